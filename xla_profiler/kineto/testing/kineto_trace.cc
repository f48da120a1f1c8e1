#include "xla_profiler/kineto/testing/kineto_trace.h"

#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace meridian {
namespace {

constexpr int64_t kProcess = 4242;

}  // namespace

int KinetoTrace::Add(absl::string_view category, absl::string_view name, double start_us,
                     double duration_us, int64_t process, int64_t thread, absl::string_view args) {
  return Raw(absl::StrCat(R"({"ph": "X", "cat": ")", category, R"(", "name": ")", name,
                          R"(", "pid": )", process, R"(, "tid": )", thread, R"(, "ts": )", start_us,
                          R"(, "dur": )", duration_us, R"(, "args": {)", args, "}}"));
}

int KinetoTrace::Host(absl::string_view category, absl::string_view name, double start_us,
                      double duration_us, int64_t thread, absl::string_view args) {
  return Add(category, name, start_us, duration_us, kProcess, thread, args);
}

int KinetoTrace::Call(absl::string_view name, double start_us, double duration_us,
                      int64_t correlation, int64_t thread) {
  return Host("cuda_runtime", name, start_us, duration_us, thread,
              absl::StrCat(R"("correlation": )", correlation));
}

int KinetoTrace::Work(absl::string_view category, absl::string_view name, double start_us,
                      double duration_us, int64_t stream, int64_t correlation, int64_t device) {
  return Add(category, name, start_us, duration_us, device, stream,
             absl::StrCat(R"("device": )", device, R"(, "stream": )", stream,
                          R"(, "correlation": )", correlation));
}

int KinetoTrace::Sync(absl::string_view name, double start_us, double duration_us, int64_t stream,
                      int64_t correlation, int64_t device) {
  return Work("cuda_sync", name, start_us, duration_us, stream, correlation, device);
}

int KinetoTrace::EventSync(absl::string_view name, double start_us, double duration_us,
                           int64_t stream, int64_t correlation, int64_t record_stream,
                           int64_t record_correlation, int64_t device) {
  return Add(
      "cuda_sync", name, start_us, duration_us, device, stream,
      absl::StrCat(R"("device": )", device, R"(, "stream": )", stream, R"(, "correlation": )",
                   correlation, R"(, "wait_on_stream": )", record_stream,
                   R"(, "wait_on_cuda_event_record_corr_id": )", record_correlation));
}

int KinetoTrace::AllReduce(double start_us, double duration_us, int64_t stream, int64_t correlation,
                           int ranks, int64_t seq) {
  std::vector<int> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return Add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", start_us, duration_us,
             /*process=*/0, stream,
             absl::StrCat(R"("device": 0, "stream": )", stream, R"(, "correlation": )", correlation,
                          R"(, "Collective name": "allreduce", "In msg nelems": 64, )",
                          R"("Out msg nelems": 64, "dtype": "Float", "Group size": )", ranks,
                          R"(, "Process Group Name": "0", "Seq": )", seq,
                          R"(, "Process Group Ranks": "[)", absl::StrJoin(members, ", "), R"(]")"));
}

int KinetoTrace::Raw(absl::string_view event) {
  events_.emplace_back(event);
  return static_cast<int>(events_.size()) - 1;
}

std::string KinetoTrace::Text() const {
  return absl::StrCat("{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": ", rank_, "},\n",
                      "\"traceEvents\": [\n", absl::StrJoin(events_, ",\n"), "\n],\n",
                      "\"traceName\": \"test\"}\n");
}

}  // namespace meridian
