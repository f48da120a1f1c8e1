// SPDX-License-Identifier: Apache-2.0
// Traces as PyTorch's profiler writes them, event by event:
//
//   KinetoTrace trace;
//   trace.Op("aten::add", 0, 100);
//   trace.Call("cudaLaunchKernel", 10, 5, /*correlation=*/1);
//   trace.Work("kernel", "add", 30, 40, /*stream=*/7, /*correlation=*/1);
//   Use(trace.Text());
//
// Times are microseconds. An event's place in the file is the number of those before it.
#ifndef XLA_PROFILER_KINETO_TESTING_KINETO_TRACE_H_
#define XLA_PROFILER_KINETO_TESTING_KINETO_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace meridian {

// Where host events run unless told otherwise.
inline constexpr int64_t kMainThread = 100;

class KinetoTrace {
 public:
  // Appends an event of the host and returns its place.
  int Host(absl::string_view category, absl::string_view name, double start_us, double duration_us,
           int64_t thread = kMainThread, absl::string_view args = "");
  int Op(absl::string_view name, double start_us, double duration_us,
         int64_t thread = kMainThread) {
    return Host("cpu_op", name, start_us, duration_us, thread);
  }
  int Call(absl::string_view name, double start_us, double duration_us, int64_t correlation,
           int64_t thread = kMainThread);
  int Annotation(absl::string_view name, double start_us, double duration_us,
                 int64_t thread = kMainThread) {
    return Host("user_annotation", name, start_us, duration_us, thread);
  }

  // Appends an event of a device. Categories: kernel, gpu_memcpy, gpu_memset.
  int Work(absl::string_view category, absl::string_view name, double start_us, double duration_us,
           int64_t stream, int64_t correlation, int64_t device = 0);
  int Kernel(absl::string_view name, double start_us, double duration_us, int64_t stream,
             int64_t correlation, int64_t device = 0) {
    return Work("kernel", name, start_us, duration_us, stream, correlation, device);
  }

  // Appends the cuda_sync event of a call. Names: Stream Sync, Context Sync (stream -1).
  int Sync(absl::string_view name, double start_us, double duration_us, int64_t stream,
           int64_t correlation, int64_t device = 0);
  // Names: Stream Wait Event, Event Sync. Waits for the cudaEventRecord call with that correlation.
  int EventSync(absl::string_view name, double start_us, double duration_us, int64_t stream,
                int64_t correlation, int64_t record_stream, int64_t record_correlation,
                int64_t device = 0);

  // Appends an all-reduce of so many ranks, the seq-th of its process group.
  int AllReduce(double start_us, double duration_us, int64_t stream, int64_t correlation, int ranks,
                int64_t seq);

  // Appends the text of an event.
  int Raw(absl::string_view event);

  // The rank that the trace says it is of.
  void set_rank(int64_t rank) { rank_ = rank; }

  std::string Text() const;

 private:
  int Add(absl::string_view category, absl::string_view name, double start_us, double duration_us,
          int64_t process, int64_t thread, absl::string_view args);

  std::vector<std::string> events_;
  int64_t rank_ = 3;
};

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_TESTING_KINETO_TRACE_H_
