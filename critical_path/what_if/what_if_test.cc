#include "critical_path/what_if/what_if.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/testing/random_graph.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "critical_path/what_if/what_if_edits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A long and a short kernel run beside each other, and the host waits for both.
//
//   host      |launch a|launch b|--- cudaDeviceSynchronize -----------------|
//             0        10       20                                         125
//   stream 7        |--------------- a: 15 .. 115 --------------|
//   stream 8                |--- b: 30 .. 90 ---|
MeasuredGraph TwoStreams() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 10, 1);
  trace.Call("cudaLaunchKernel", 10, 10, 2);
  trace.Call("cudaDeviceSynchronize", 20, 105, 3);
  trace.Kernel("a", 15, 100, 7, 1);
  trace.Kernel("b", 30, 60, 8, 2);
  trace.Sync("Context Sync", 20, 105, -1, 3);
  return MeasureTrace(trace);
}

TEST(WhatIfTest, SpeedingOneKernelPastAnotherMovesThePath) {
  EXPECT_THAT(StepsAfter(TwoStreams(), "scale all 1"),
              ElementsAre("gpu_kernel_launch_overhead a 15", "gpu_compute_bound a 100",
                          "cpu_bound cudaDeviceSynchronize 10"));
  // a ends at 65, before b at 90.
  EXPECT_THAT(StepsAfter(TwoStreams(), "scale name=\"a\" 0.5"),
              ElementsAre("cpu_bound cudaLaunchKernel 10", "gpu_kernel_launch_overhead b 20",
                          "gpu_compute_bound b 60", "cpu_bound cudaDeviceSynchronize 10"));
  // The host's own time is left, and the call still has to return.
  EXPECT_THAT(StepsAfter(TwoStreams(), "set category=device 0us; set category=launch 0"),
              ElementsAre("cpu_bound cudaLaunchKernel 10", "cpu_bound cudaLaunchKernel 10",
                          "cpu_bound cudaDeviceSynchronize 10"));
}

// Each question finds the run as it was measured, whatever was asked, or refused, before.
TEST(WhatIfRunTest, AnswersAreThoseOfQuestionsAskedAlone) {
  const MeasuredGraph measured = TwoStreams();
  WhatIfRun run(measured.graph, measured.path, /*hta_compatible=*/false);
  for (const char* text : {"scale name=\"a\" 0.5", "scale name=\"none\" 0.5",
                           "set category=device 0us", "scale all 1", "scale name=\"a\" 0.5"}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits, ParseWhatIfEdits(text));
    const absl::StatusOr<WhatIfResult> alone = WhatIf(measured, text);
    const absl::StatusOr<const WhatIfResult*> asked = run.Ask(edits);
    ASSERT_EQ(asked.status(), alone.status()) << text;
    if (!alone.ok()) continue;
    EXPECT_EQ((*asked)->path.edges, alone->path.edges) << text;
    EXPECT_EQ((*asked)->path.length_ps, alone->path.length_ps) << text;
    EXPECT_EQ((*asked)->matched, alone->matched) << text;
    EXPECT_EQ(CountChanged((*asked)->edited.graph, *alone), 0) << text;
  }
}

TEST(WhatIfTest, TheGraphHasTheNewTimes) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(TwoStreams(), "scale name=\"a\" 0.5"));
  const PathGraph& graph = result.edited.graph;
  EXPECT_THAT(result.matched, ElementsAre(1));
  // a is shorter and the synchronisation ends earlier.
  EXPECT_EQ(CountChanged(TwoStreams().graph, result), 2);
  EXPECT_EQ(graph.window_end_ps - graph.window_start_ps, 100 * kPsPerUs);
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const int64_t start_us = graph.events[id].start_ps / kPsPerUs;
    const int64_t us = graph.events[id].duration_ps / kPsPerUs;
    if (graph.EventName(id) == "a") {
      EXPECT_EQ(std::make_pair(start_us, us), std::make_pair(int64_t{15}, int64_t{50}));
    } else if (graph.EventName(id) == "cudaDeviceSynchronize") {
      EXPECT_EQ(std::make_pair(start_us, us), std::make_pair(int64_t{20}, int64_t{80}));
    }
  }
}

TEST(WhatIfTest, TheBreakdownAddsUpToTheNewLength) {
  for (const char* edits :
       {"scale category=device 0.3", "scale category=host 7", "set category=launch 1.5us",
        "set name=\"a\" 0", "scale all 3; set name=\"b\" 33us"}) {
    ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(TwoStreams(), edits));
    int64_t sum_ps = 0;
    for (int64_t time_ps : BreakDown(result.edited.graph, result.path).time_ps) {
      sum_ps += time_ps;
    }
    EXPECT_EQ(sum_ps, result.path.length_ps) << edits;
    EXPECT_EQ(result.edited.graph.window_end_ps - result.edited.graph.window_start_ps,
              result.path.length_ps)
        << edits;
  }
}

TEST(WhatIfTest, EditsApplyOneAfterTheOther) {
  // 100 x 0.5 x 0.5, and b, which takes no time any more, ends before a does.
  EXPECT_EQ(MicrosAfter(TwoStreams(), R"(
      set name="b" 0
      scale name="a" 0.5
      scale category=kernel 0.5)"),
            15 + 25 + 10);
}

TEST(WhatIfTest, WhatMatchesNothingNamesWhatThereIs) {
  EXPECT_THAT(WhatIfError(TwoStreams(), "scale all 1\n scale name=\"c\" 2"),
              AllOf(StartsWith("scale name=\"c\" 2: nothing matches name=\"c\"; the most "
                               "frequent names are 'cudaLaunchKernel' (2x), "),
                    HasSubstr("'a' (1x)")));
  EXPECT_THAT(
      WhatIfError(TwoStreams(), "scale category=gpu 2"),
      HasSubstr("'gpu' is no category; there are: kernel, runtime_api; of events in groups: "
                "host, device, communication, compute; of delays: launch, kernel_gap, "
                "host_gap"));
  EXPECT_THAT(WhatIfError(TwoStreams(), "scale rank=0 2"),
              HasSubstr("nothing matches rank=0; there are the categories kernel, runtime_api; the "
                        "ranks 3"));
  EXPECT_THAT(WhatIfError(TwoStreams(), "scale category=launch category=host_gap 2"),
              HasSubstr("nothing matches category=launch category=host_gap"));
}

TEST(WhatIfTest, WhatCannotBeIsRefused) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"level rank=0", "rank 0 cannot be levelled with others; there are the ranks 3"},
      {"scale all 1000000; scale all 1000000; scale all 1000000", "longer than 106 days"},
      {"scale all 1000000; scale all 20000", "the edited run lasts longer than 13 days"},
      {"scale all 1000000; scale all 80000; set name=\"a\" 1us", "longer than"},
  };
  for (const auto& [edits, reason] : wrong) {
    EXPECT_THAT(WhatIfError(TwoStreams(), edits), HasSubstr(reason)) << edits;
  }
}

// Saved graphs can hold anything: events without one of their instants, edges of any type anywhere.
TEST(WhatIfTest, AnyGraphIsEditedOrRefused) {
  std::mt19937 random(3);
  int edited = 0;
  for (int i = 0; i < 150; ++i) {
    PathGraph graph = RandomGraph(3 + i % 14, random);
    if (graph.edges.empty()) continue;
    if (i % 2 == 0) graph.end_instant = graph.edges.back().to;
    if (i % 3 == 0) graph.instants[random() % graph.instants.size()].event = kNoEvent;
    const MeasuredGraph measured = MeasureGraph(std::move(graph));
    for (const char* edits :
         {"scale all 3", "set category=device 5ns", "set category=kernel_gap 2ns", "set event=3 0",
          "scale category=device 0", "scale within=~\"e\" 2", "scale with=0 2", "level rank=0"}) {
      const absl::StatusOr<WhatIfResult> result = WhatIf(measured, edits);
      if (!result.ok()) continue;
      ++edited;
      int64_t sum_ps = 0;
      for (int64_t time_ps : BreakDown(result->edited.graph, result->path).time_ps) {
        sum_ps += time_ps;
      }
      EXPECT_EQ(sum_ps, result->path.length_ps) << i << " " << edits;
    }
  }
  EXPECT_GT(edited, 500);
}

TEST(WhatIfTest, TimesThatNoTraceHasAreRefused) {
  MeasuredGraph measured = TwoStreams();
  measured.graph.instants[3].time_ps = INT64_MAX;
  EXPECT_THAT(WhatIfError(measured, "scale all 1"), HasSubstr("span more than 13 days"));
}

}  // namespace
}  // namespace meridian
