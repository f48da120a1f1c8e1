#include "critical_path/hta/hta_launches.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

// Event 0 is no event to HTA when another one refers to it.
KinetoTrace NewTrace() {
  KinetoTrace trace;
  trace.Op("first", 0, 1);
  return trace;
}

HtaFrame Load(const KinetoTrace& trace) {
  absl::StatusOr<HtaFrame> frame = LoadHtaFrame(trace.Text(), "test");
  EXPECT_OK(frame);
  return *std::move(frame);
}

TEST(HtaLaunchesTest, KnowsTheCallsThatLaunch) {
  const auto launches = [](const char* call) {
    KinetoTrace trace = NewTrace();
    trace.Call(call, 0, 5, 1);
    trace.Kernel("k", 20, 10, 7, 1);
    const HtaFrame frame = Load(trace);
    return !HtaLaunches(frame).empty();
  };
  EXPECT_TRUE(launches("cudaLaunchKernelExC"));
  EXPECT_TRUE(launches("hipMemcpyWithStream"));
  EXPECT_FALSE(launches("cudaGraphLaunch"));
  EXPECT_FALSE(launches("cudaMemcpy"));
}

TEST(HtaLaunchesTest, QueuesOfOneNumberAreOne) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 10, 5, 2);
  trace.Kernel("a", 20, 10, 7, 1, /*device=*/0);
  trace.Kernel("b", 30, 10, 7, 2, /*device=*/1);
  trace.Op("op", 30, 10);
  const HtaFrame frame = Load(trace);
  const HtaLaunches launches(frame);
  EXPECT_EQ(launches.QueueLength(1), 1);
  EXPECT_EQ(launches.QueueLength(2), 2);
  EXPECT_EQ(launches.QueueLength(3), 1);
  EXPECT_EQ(launches.QueueLength(4), 0);
  EXPECT_EQ(launches.QueueLength(5), HtaLaunches::kUnknown);
}

TEST(HtaLaunchesTest, FindsLaunchesAroundRecordsAndWaits) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);                  // 1, stream 7
  trace.Call("cudaLaunchKernel", 5, 1, 2);                  // 2, stream 20
  trace.Call("cudaEventRecord", 10, 1, 11);                 // 3, on stream 7
  trace.Call("cudaLaunchKernel", 12, 1, 3);                 // 4, stream 7
  trace.Call("cudaStreamWaitEvent", 20, 1, 21);             // 5, stream 20
  trace.Call("cudaLaunchKernel", 22, 1, 4, /*thread=*/55);  // 6, stream 20
  trace.Call("cudaLaunchKernel", 24, 1, 5);                 // 7, stream 7
  trace.Call("cudaLaunchKernel", 26, 1, 6);                 // 8, stream 20
  int kernel = 0;
  for (int stream : {7, 20, 7, 20, 7, 20}) trace.Kernel("k", 100, 1, stream, ++kernel);
  trace.EventSync("Stream Wait Event", 20, 1, 20, 21, 7, 11);
  const HtaFrame frame = Load(trace);
  const HtaLaunches launches(frame);
  ASSERT_NE(launches.LaunchBeforeRecord(11), nullptr);
  EXPECT_EQ(launches.LaunchBeforeRecord(11)->index, 1u);
  EXPECT_EQ(launches.LaunchBeforeRecord(12), nullptr);
  // Not the other thread's, and not the other stream's.
  ASSERT_NE(launches.LaunchAfterWait(5), nullptr);
  EXPECT_EQ(launches.LaunchAfterWait(5)->index, 8u);
  EXPECT_EQ(launches.LaunchAfterWait(6), nullptr);
}

TEST(HtaLaunchesTest, NothingMayBeAround) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaEventRecord", 0, 1, 11);
  trace.Call("cudaStreamWaitEvent", 2, 1, 21);
  trace.EventSync("Stream Wait Event", 2, 1, 20, 21, 7, 11);
  trace.Call("cudaGraphLaunch", 5, 1, 1);
  trace.Kernel("k", 100, 1, 7, 1);
  const HtaFrame frame = Load(trace);
  const HtaLaunches launches(frame);
  EXPECT_TRUE(launches.empty());
  EXPECT_EQ(launches.LaunchBeforeRecord(11), nullptr);
  EXPECT_EQ(launches.LaunchAfterWait(2), nullptr);
}

}  // namespace
}  // namespace meridian
