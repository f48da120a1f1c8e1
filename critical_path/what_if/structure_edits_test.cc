#include "critical_path/what_if/structure_edits.h"

#include <cstdint>

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

// Communication between two kernels of one stream: a 10 .. 50, nccl 52 .. 112, b 114 .. 154.
MeasuredGraph OneStream() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 5, 5, 2);
  trace.Call("cudaLaunchKernel", 10, 5, 3);
  trace.Call("cudaDeviceSynchronize", 15, 149, 4);
  trace.Kernel("a", 10, 40, 7, 1);
  trace.Kernel("ncclDevKernel_AllReduce", 52, 60, 7, 2);
  trace.Kernel("b", 114, 40, 7, 3);
  trace.Sync("Context Sync", 15, 149, -1, 4);
  return MeasureTrace(trace);
}

// Two operators of one thread, one with another within it, one that launches.
//
//   host   |--- A: 0 .. 100 ------|   |--- B: 110 .. 150 ---|
//             |- inner: 20 .. 50 -|        |launch: 120|
//   stream 7                                  |- k: 130 .. 140 -|
MeasuredGraph TwoOperators() {
  KinetoTrace trace;
  trace.Op("A", 0, 100);
  trace.Op("inner", 20, 30);
  trace.Op("B", 110, 40);
  trace.Call("cudaLaunchKernel", 120, 5, 1);
  trace.Kernel("k", 130, 10, 7, 1);
  return MeasureTrace(trace);
}

TEST(StructureEditsTest, MovesWorkOnItsStream) {
  EXPECT_EQ(MicrosAfter(Gradients(), "scale all 1"), 165);
  // y starts 10 after its launch, at 15, and ends at 55; nccl 58 .. 118; x 57 .. 97; return 10.
  EXPECT_EQ(MicrosAfter(Gradients(), "move name=\"y\" before name=\"x\""), 128);
  EXPECT_EQ(MicrosAfter(Gradients(), "move name=\"x\" after name=\"y\""), 128);
  // Nothing changes.
  EXPECT_EQ(MicrosAfter(Gradients(), "move name=\"x\" before name=\"y\""), 165);
  // The host waits for all three, in whatever order: b 10 after its launch at 10, then a, then
  // nccl.
  EXPECT_EQ(MicrosAfter(OneStream(), "move name=\"b\" before name=\"a\""),
            20 + 40 + 2 + 40 + 2 + 60 + 10);
}

TEST(StructureEditsTest, MovesOperatorsOnTheirThread) {
  EXPECT_EQ(MicrosAfter(TwoOperators(), "scale all 1"), 150);
  // B 40, gap 10, A 100 with what is within it.
  EXPECT_THAT(StepsAfter(TwoOperators(), "move name=\"B\" before name=\"A\""),
              ElementsAre("cpu_bound B 10", "cpu_bound cudaLaunchKernel 5", "cpu_bound B 25",
                          "host_gap 10", "cpu_bound A 20", "cpu_bound inner 30", "cpu_bound A 50"));
  EXPECT_THAT(WhatIfError(TwoOperators(), "move name=\"inner\" after name=\"B\""),
              HasSubstr("are not on the same thread or stream, and within the same event"));
}

TEST(StructureEditsTest, OverlapsCommunication) {
  EXPECT_EQ(MicrosAfter(OneStream(), "scale all 1"), 164);
  // b follows a, 52 .. 92; nccl runs 52 .. 112, and the host waits for both.
  EXPECT_THAT(StepsAfter(OneStream(), "overlap category=communication"),
              ElementsAre("gpu_kernel_launch_overhead a 10", "gpu_compute_bound a 40",
                          "gpu_kernel_kernel_overhead ncclDevKernel_AllReduce 2",
                          "gpu_communication_bound ncclDevKernel_AllReduce 60",
                          "cpu_bound cudaDeviceSynchronize 10"));
  // b needs its result: 112 .. 152, and 10 to return.
  EXPECT_EQ(MicrosAfter(OneStream(), "overlap category=communication until name=\"b\""), 162);
  // It had its own stream already, and only the host waits for it.
  EXPECT_EQ(MicrosAfter(Gradients(), "overlap category=communication"), 165);
}

TEST(StructureEditsTest, AddsWorkAndOperators) {
  EXPECT_EQ(MicrosAfter(OneStream(), "add \"extra\" 30us after name=\"a\""), 194);
  // The host waits for it as it did for b.
  EXPECT_EQ(MicrosAfter(OneStream(), "add \"extra\" 30us after name=\"b\""), 194);
  EXPECT_EQ(MicrosAfter(TwoOperators(), "add \"extra\" 30us after name=\"inner\""), 180);
  EXPECT_EQ(MicrosAfter(TwoOperators(), "add \"extra\" 30us after name=\"B\""), 180);
  EXPECT_EQ(MicrosAfter(TwoOperators(), "add \"extra\" 1us after category=cpu_op"), 153);
}

// The measured times of what comes after a new event are within it until the graph is run.
TEST(StructureEditsTest, AddingAndRemovingIsNothing) {
  for (const char* anchor : {"A", "inner", "B", "cudaLaunchKernel", "k"}) {
    ASSERT_OK_AND_ASSIGN(const WhatIfResult result,
                         WhatIf(TwoOperators(), absl::StrCat("add \"x\" 200us after name=\"",
                                                             anchor, "\"; remove name=\"x\"")));
    EXPECT_THAT(result.matched, ElementsAre(1, 1)) << anchor;
    EXPECT_EQ(result.changed_events, 0) << anchor;
    EXPECT_EQ(result.path.length_ps, 150'000'000) << anchor;
  }
}

// 106 days are all that there is.
TEST(StructureEditsTest, ManyLongEventsDoNotOverflow) {
  constexpr int64_t kDayPs = int64_t{86'400} * 1'000'000'000'000;
  const MeasuredGraph measured = TwoOperators();
  WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  GraphEventId last = 0;
  for (int day = 0; day < 110; ++day) {
    Selection selection;
    selection.events.resize(edited.graph.events.size());
    selection.events[last] = true;
    selection.count = 1;
    ASSERT_OK(AddEvents("x", kDayPs, selection, &edited));
    last = static_cast<GraphEventId>(edited.graph.events.size() - 1);
  }
  EXPECT_EQ(edited.graph.events[last].start_ps, INT64_MAX);
  EXPECT_EQ(edited.graph.instants[edited.end_instants[last]].time_ps, INT64_MAX);
}

TEST(StructureEditsTest, NothingIsWithinANewEvent) {
  ASSERT_OK_AND_ASSIGN(
      const WhatIfResult result,
      WhatIf(TwoOperators(), "add \"x\" 200us after name=\"inner\"; scale within=\"x\" 0.5"));
  EXPECT_THAT(result.matched, ElementsAre(1, 1));
  EXPECT_EQ(result.path.length_ps, 250'000'000);
  // It is within what the event before it is within.
  EXPECT_EQ(MicrosAfter(TwoOperators(), "add \"x\" 200us after name=\"inner\"; remove name=\"A\""),
            50);
  // B 40, gap 10, A 100, x 200.
  EXPECT_EQ(MicrosAfter(TwoOperators(),
                        "add \"x\" 200us after name=\"A\"; move name=\"B\" before name=\"A\""),
            350);
}

TEST(StructureEditsTest, LinksAndUnlinks) {
  // nccl starts 10 after its launch at 12 and ends at 82; y ends at 92.
  EXPECT_EQ(MicrosAfter(Gradients(), "unlink name=\"y\" to category=communication"), 102);
  // x again after communication: 155 + 5 .. 200, y 202 .. 242.
  EXPECT_THAT(WhatIfError(Gradients(), "link category=communication to name=\"x\" 5us"),
              HasSubstr("wait for each other"));
  EXPECT_EQ(MicrosAfter(Gradients(),
                        "unlink name=\"y\" to category=communication; "
                        "link category=communication to name=\"x\" 5us"),
            22 + 60 + 5 + 40 + 2 + 40 + 10);
}

}  // namespace
}  // namespace meridian
