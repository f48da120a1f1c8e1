#include "critical_path/what_if/duration_edits.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An operator of 70 us with another within it, then a gap and a synchronisation.
//
//   host   |--- A: 0 .. 100 ------------|   |--- sync: 110 .. 150 ---|
//             |- inner: 20 .. 50, launch 30 -|
//   stream 7        |- k: 40 .. 140 -----------------------------|
MeasuredGraph Step() {
  KinetoTrace trace;
  trace.Op("A", 0, 100);
  trace.Op("inner", 20, 30);
  trace.Call("cudaLaunchKernel", 30, 5, 1);
  trace.Call("cudaStreamSynchronize", 110, 40, 2);
  trace.Kernel("k", 40, 100, 7, 1);
  trace.Sync("Stream Sync", 110, 40, 7, 2);
  return MeasureTrace(trace);
}

TEST(DurationEditsTest, OwnTimeIsThatOfTheEventAlone) {
  const MeasuredGraph measured = Step();
  const WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  const std::vector<int64_t> own_ps = OwnTimes(edited);
  std::vector<std::string> own;
  for (GraphEventId id = 0; id < own_ps.size(); ++id) {
    own.push_back(absl::StrCat(edited.graph.EventName(id), " ", own_ps[id] / 1'000'000));
  }
  // The synchronisation's own time is its return; the rest was waiting.
  EXPECT_THAT(own, ElementsAre("A 70", "inner 25", "cudaLaunchKernel 5", "cudaStreamSynchronize 10",
                               "k 100"));
}

TEST(DurationEditsTest, SetKeepsTheProportionsOfTheParts) {
  // Of A's 7 us 2 come before inner: the launch is at 12 us, k at 22 .. 122, return 10.
  EXPECT_THAT(StepsAfter(Step(), "set name=\"A\" 7us"),
              ElementsAre("cpu_bound A 2", "cpu_bound inner 10", "gpu_kernel_launch_overhead k 10",
                          "gpu_compute_bound k 100", "cpu_bound cudaStreamSynchronize 10"));
  // The parts of 1 ps and of thirds add up.
  for (const char* edit : {"set name=\"A\" 0.001ns", "set name=\"A\" 33.333333us"}) {
    const MeasuredGraph measured = Step();
    ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(measured, edit));
    ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits(edit));
    EXPECT_EQ(OwnTimes(result.edited)[0], edits[0].duration_ps);
  }
}

TEST(DurationEditsTest, ACallReturnsAfterWhatItWaitsForAndAfterItsStart) {
  // k ends at 50, before the call begins at 110: that takes its 10 us all the same.
  EXPECT_EQ(MicrosAfter(Step(), "scale name=\"k\" 0.1"), 120);
  EXPECT_EQ(MicrosAfter(Step(), "scale name=\"k\" 0.1; scale name=~\"Synchronize\" 3"), 140);
  EXPECT_EQ(MicrosAfter(Step(), "scale name=~\"Synchronize\" 3"), 170);
}

TEST(DurationEditsTest, AnEventWithoutTimeGetsSome) {
  EXPECT_EQ(MicrosAfter(Step(), "set name=\"k\" 0us; set name=\"k\" 100us"), 150);
  // All of A comes after inner now: the launch is at 10, k 20 .. 120.
  EXPECT_EQ(MicrosAfter(Step(), "set name=\"A\" 0; set name=\"A\" 70us"), 130);
}

TEST(DurationEditsTest, DelaysAreSetAndScaled) {
  EXPECT_EQ(MicrosAfter(Step(), "set category=launch 0us"), 140);
  EXPECT_EQ(MicrosAfter(Step(), "scale category=launch 3"), 170);
  // The host arrives at 1100 and has nothing to wait for.
  EXPECT_EQ(MicrosAfter(Step(), "set category=host_gap 1ms"), 2110);
}

// A thread with nested operators, two streams and waits, all at random.
MeasuredGraph RandomStep(std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<double>(random() % below); };
  KinetoTrace trace;
  double now = 0;
  double free[2] = {0, 0};
  for (int i = 1; i <= 12; ++i) {
    now += draw(20);
    const double start = now;
    now += 1 + draw(10);
    trace.Call("cudaLaunchKernel", now, 5, i);
    const int stream = random() % 2;
    const double begin = std::max(free[stream] + draw(3), now + draw(15));
    free[stream] = begin + 1 + draw(60);
    trace.Kernel(absl::StrCat("k", i % 3), begin, free[stream] - begin, 7 + stream, i);
    now += 5 + draw(10);
    trace.Op("op", start, now - start);
    if (random() % 4 == 0) {
      const double end = std::max({now, free[0], free[1]}) + 1 + draw(5);
      trace.Call("cudaDeviceSynchronize", now, end - now, 100 + i);
      trace.Sync("Context Sync", now, end - now, -1, 100 + i);
      now = end;
    }
  }
  return MeasureTrace(trace);
}

TEST(DurationEditsTest, LawsOfScaling) {
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const MeasuredGraph measured = RandomStep(random);
    const int64_t length_ps = measured.path.length_ps;
    // By 1: nothing changes.
    ASSERT_OK_AND_ASSIGN(const WhatIfResult same,
                         WhatIf(measured, "scale all 1; scale category=launch 1"));
    EXPECT_EQ(same.path.length_ps, length_ps);
    EXPECT_EQ(CountChanged(measured.graph, same), 0);
    // Everything by 3, delays too: three times as long.
    ASSERT_OK_AND_ASSIGN(
        const WhatIfResult thrice,
        WhatIf(measured,
               "scale all 3; scale category=launch 3; scale category=kernel_gap 3; "
               "scale category=host_gap 3"));
    EXPECT_EQ(thrice.path.length_ps, 3 * length_ps);
    // Less work takes no longer, more no shorter.
    ASSERT_OK_AND_ASSIGN(const WhatIfResult less, WhatIf(measured, "scale name=\"k1\" 0.5"));
    EXPECT_LE(less.path.length_ps, length_ps);
    ASSERT_OK_AND_ASSIGN(const WhatIfResult more, WhatIf(measured, "scale name=\"k2\" 2"));
    EXPECT_GE(more.path.length_ps, length_ps);
    ASSERT_OK_AND_ASSIGN(const WhatIfResult without, WhatIf(measured, "set name=\"k1\" 0"));
    EXPECT_LE(without.path.length_ps, length_ps);
  }
}

// A kernel that was launched before the profile runs into the first step: that, with the first
// step, stays as it was measured. Of two steps of 100 us after it, launched at once, only the
// second is scaled.
TEST(DurationEditsTest, WhatWasBeforeTheStepsStaysAsItWas) {
  KinetoTrace trace;
  trace.Annotation("ProfilerStep#1", 0, 10);
  trace.Annotation("ProfilerStep#2", 10, 10);
  trace.Call("cudaLaunchKernel", 1, 2, 1);
  trace.Call("cudaLaunchKernel", 11, 2, 2);
  trace.Kernel("earlier", 5, 95, 7, 99);
  trace.Kernel("k", 100, 100, 7, 1);
  trace.Kernel("k", 200, 100, 7, 2);
  EXPECT_EQ(MicrosAfter(MeasureTrace(trace), "scale category=device 0.5"), 250);
  EXPECT_EQ(MicrosAfter(MeasureTrace(trace), "set name=\"k\" 10us"), 210);
}

}  // namespace
}  // namespace meridian
