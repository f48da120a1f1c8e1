#include "critical_path/what_if/structure_edits.h"

#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// Two operators of one thread, one with another within it, one that launches; the host waits.
//
//   host   |--- A: 0 .. 100 ------|   |--- B: 110 .. 150 ---|--- sync: 150 .. 200 ---|
//             |- inner: 20 .. 50 -|        |launch: 120|
//   stream 7                                  |- k1: 130 .. 160 -| |- k2: 162 .. 190 -|
MeasuredGraph Step() {
  KinetoTrace trace;
  trace.Op("A", 0, 100);
  trace.Op("inner", 20, 30);
  trace.Op("B", 110, 40);
  trace.Call("cudaLaunchKernel", 120, 5, 1);
  trace.Call("cudaLaunchKernel", 130, 5, 2);
  trace.Call("cudaDeviceSynchronize", 150, 50, 3);
  trace.Kernel("k1", 130, 30, 7, 1);
  trace.Kernel("k2", 162, 28, 7, 2);
  trace.Sync("Context Sync", 150, 50, -1, 3);
  return MeasureTrace(trace);
}

TEST(EventRemovalTest, WhatIsAroundAnOperatorKeepsItsTime) {
  EXPECT_EQ(MicrosAfter(Step(), "scale all 1"), 200);
  EXPECT_THAT(StepsAfter(Step(), "remove name=\"inner\""),
              ElementsAre("cpu_bound A 70", "host_gap 10", "cpu_bound B 10",
                          "gpu_kernel_launch_overhead k1 10", "gpu_compute_bound k1 30",
                          "gpu_kernel_kernel_overhead k2 2", "gpu_compute_bound k2 28",
                          "cpu_bound cudaDeviceSynchronize 10"));
}

TEST(EventRemovalTest, AnOperatorGoesWithWhatItCallsAndLaunches) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(Step(), "remove name=\"B\""));
  // B, two calls, two kernels. A 100, the gap, and the call's return.
  EXPECT_THAT(result.matched, ElementsAre(5));
  EXPECT_EQ(result.path.length_ps, 120'000'000);
  // The gap before what is left stays, that around A and inner goes with nothing.
  EXPECT_EQ(MicrosAfter(Step(), "remove name=\"A\""), 100);
}

TEST(EventRemovalTest, WhatWaitedForAKernelWaitsForTheOneBefore) {
  EXPECT_THAT(StepsAfter(Step(), "remove name=\"k2\""),
              ElementsAre("cpu_bound A 20", "cpu_bound inner 30", "cpu_bound A 50", "host_gap 10",
                          "cpu_bound B 10", "gpu_kernel_launch_overhead k1 10",
                          "gpu_compute_bound k1 30", "cpu_bound cudaDeviceSynchronize 10"));
  // k2 starts 10 after its launch at 130.
  EXPECT_EQ(MicrosAfter(Step(), "remove name=\"k1\""), 130 + 10 + 28 + 10);
}

TEST(EventRemovalTest, WhatIsOffThePathDoesNotLengthenIt) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 10, 1);
  trace.Call("cudaLaunchKernel", 10, 10, 2);
  trace.Call("cudaDeviceSynchronize", 20, 105, 3);
  trace.Kernel("a", 15, 100, 7, 1);
  trace.Kernel("b", 30, 60, 8, 2);
  trace.Sync("Context Sync", 20, 105, -1, 3);
  EXPECT_EQ(MicrosAfter(MeasureTrace(trace), "remove name=\"b\""), 125);
  EXPECT_EQ(MicrosAfter(MeasureTrace(trace), "remove name=\"a\""), 100);
}

}  // namespace
}  // namespace meridian
