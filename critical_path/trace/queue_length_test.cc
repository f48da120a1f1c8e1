#include "critical_path/trace/queue_length.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

std::string Csv(const KinetoTrace& trace) {
  const std::string text = trace.Text();
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(text, "test");
  EXPECT_OK(loaded);
  return QueueLengthCsv(
      FindQueueLengths(loaded->table, FindTraceJsonDependencies(text, loaded->table)));
}

TEST(QueueLengthTest, CountsFromLaunchToStart) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 10, 5, 2);
  trace.Kernel("a", 20, 10, 7, 1);
  trace.Kernel("b", 30.5, 10, 7, 2);
  EXPECT_EQ(Csv(trace),
            "device,stream,time_us,queue_length\n"
            "\"0\",\"7\",0,1\n\"0\",\"7\",10,2\n\"0\",\"7\",20,1\n\"0\",\"7\",30.5,0\n");
}

TEST(QueueLengthTest, StreamsOfTwoDevicesAreTwo) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 10, 5, 2);
  trace.Kernel("a", 20, 10, 7, 1, /*device=*/0);
  trace.Kernel("b", 20, 10, 7, 2, /*device=*/1);
  EXPECT_EQ(Csv(trace),
            "device,stream,time_us,queue_length\n"
            "\"0\",\"7\",0,1\n\"0\",\"7\",20,0\n\"1\",\"7\",10,1\n\"1\",\"7\",20,0\n");
}

TEST(QueueLengthTest, AGraphsKernelsAreQueuedAtOnceAndStartsComeBeforeLaunches) {
  KinetoTrace trace;
  trace.Call("cudaGraphLaunch", 0, 5, 1);
  trace.Kernel("a", 10, 2, 7, 1);
  trace.Kernel("b", 12, 2, 7, 1);
  trace.Call("cudaLaunchKernel", 12, 5, 2);
  trace.Kernel("c", 20, 2, 7, 2);
  trace.Kernel("launched before the trace", 30, 2, 7, 99);
  EXPECT_EQ(Csv(trace),
            "device,stream,time_us,queue_length\n"
            "\"0\",\"7\",0,1\n\"0\",\"7\",0,2\n\"0\",\"7\",10,1\n\"0\",\"7\",12,0\n"
            "\"0\",\"7\",12,1\n\"0\",\"7\",20,0\n");
}

}  // namespace
}  // namespace meridian
