#include "critical_path/what_if/duration_edits.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/testing/all_reduce_job.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// They come at 18, 44 and 24 us, and leave 20 us later than the last.
MeasuredGraph ThreeRanks() {
  return MeasureGraph(AllReduceJob({{5, 10, 3}, {9, 30, 5}, {7, 14, 3}}));
}

TEST(RankLevelingTest, ASlowRankBecomesAsFastAsTheOthersMedian) {
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "scale all 1"), 64);
  // Rank 1 takes the lower of 5 and 7, of 10 and 14, of 3 and 3, and comes at 18; now rank 2 is
  // last.
  EXPECT_THAT(
      StepsAfter(ThreeRanks(), "level rank=1"),
      ElementsAre("host_gap 7", "cpu_bound op 14", "gpu_kernel_launch_overhead all-reduce 3",
                  "gpu_communication_bound all-reduce 20"));
  // With it gone, too: 5 + 10 + 3 everywhere.
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "level rank=1; level rank=2"), 38);
}

TEST(RankLevelingTest, WhoIsNotSlowStaysAsItIs) {
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "level rank=0"), 64);
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(ThreeRanks(), "level rank=0"));
  EXPECT_EQ(CountChanged(ThreeRanks().graph, result), 0);
  // The op and the all-reduce.
  EXPECT_THAT(result.matched, ElementsAre(2));
}

TEST(RankLevelingTest, OfTwoRanksOneTakesTheTimesOfTheOther) {
  const MeasuredGraph measured = MeasureGraph(AllReduceJob({{5, 10, 3}, {9, 30, 5}}));
  EXPECT_EQ(MicrosAfter(measured, "level rank=1"), 38);
  EXPECT_EQ(MicrosAfter(measured, "level rank=0"), 64);
}

TEST(RankLevelingTest, NeedsOtherRanks) {
  EXPECT_THAT(WhatIfError(MeasureGraph(AllReduceJob({{5, 10, 3}})), "level rank=0"),
              HasSubstr("rank 0 cannot be levelled with others; there are the ranks 0"));
  EXPECT_THAT(WhatIfError(ThreeRanks(), "level rank=7"), HasSubstr("there are the ranks 0, 1, 2"));
}

// Edits of a job by rank.
TEST(RankLevelingTest, TheOthersWaitAsLongAsTheSlowRankIsSlow) {
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "scale rank=1 category=host 0.5"), 9 + 15 + 5 + 20);
  // Now the second slowest counts.
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "set rank=1 category=host 0us"), 24 + 20);
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "set category=host_gap rank=1 0us"), 35 + 20);
}

TEST(RankLevelingTest, ARanksCompanyCommunicatesWithIt) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(ThreeRanks(), "scale with=1 0.5"));
  // The all-reduce on all three.
  EXPECT_THAT(result.matched, ElementsAre(3));
  EXPECT_EQ(result.path.length_ps, (44 + 10) * 1'000'000);
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "scale category=communication 0.5"), 54);
  EXPECT_THAT(WhatIfError(ThreeRanks(), "scale with=7 2"), HasSubstr("nothing matches"));
}

// Two ranks do "op" on two threads of the host, in opposite orders, and rank 1 is slow in that of
// its first thread; in step 2 it does "op" once more. Counted over all steps and threads, its slow
// op would be compared with rank 0's long one on the other thread.
TEST(RankLevelingTest, CounterpartsAreOfTheSameStepAndThread) {
  PathGraph graph;
  const NameId op = graph.names.Intern("op");
  const auto add = [&](LaneId lane, int64_t step, int64_t start_us, int64_t us) {
    GraphEvent event;
    event.name = op;
    event.lane = lane;
    event.step = step;
    event.start_ps = start_us * 1'000'000;
    event.duration_ps = us * 1'000'000;
    graph.events.push_back(event);
  };
  for (const int64_t rank : {0, 1}) {
    for (const char* thread : {"1", "2"})
      graph.lanes.push_back({rank, TrackKind::kHost, "", thread});
  }
  // The first threads begin first, on both ranks.
  add(0, 1, 0, 1);
  add(1, 1, 5, 50);
  add(0, 2, 60, 2);
  add(2, 1, 0, 1);
  add(2, 2, 10, 30);
  add(3, 1, 45, 50);
  graph.window_end_ps = 100'000'000;
  AddInstants(&graph);
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    graph.AddTimed(kWindowStart, StartInstant(id), EdgeType::kDependency, BoundBy::kNothing,
                   kNoEvent);
    graph.AddTimed(StartInstant(id), EndInstant(id), EdgeType::kOperator, BoundBy::kCpu, id);
    graph.AddUntimed(EndInstant(id), *graph.end_instant, EdgeType::kDependency);
  }
  const MeasuredGraph measured = MeasureGraph(std::move(graph));
  WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  ASSERT_OK_AND_ASSIGN(const int64_t matched, LevelRank(1, &edited));
  EXPECT_EQ(matched, 3);
  const std::vector<int64_t> own_ps = OwnTimes(edited);
  EXPECT_EQ(own_ps[3], 1'000'000);
  // Its op of step 2 takes what that of rank 0's first thread does, not 50 us.
  EXPECT_EQ(own_ps[4], 2'000'000);
  EXPECT_EQ(own_ps[5], 50'000'000);
}

}  // namespace
}  // namespace meridian
