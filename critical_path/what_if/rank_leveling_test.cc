#include "critical_path/what_if/duration_edits.h"

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
  EXPECT_EQ(result.changed_events, 0);
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

// Edits of a job by rank and link.
TEST(RankLevelingTest, TheOthersWaitAsLongAsTheSlowRankIsSlow) {
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "scale rank=1 category=host 0.5"), 9 + 15 + 5 + 20);
  // Now the second slowest counts.
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "set rank=1 category=host 0us"), 24 + 20);
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "remove rank=1"), 24 + 20);
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "set category=host_gap rank=1 0us"), 35 + 20);
}

TEST(RankLevelingTest, LinksAreBetweenRanksThatMeet) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(ThreeRanks(), "scale link=0->1 2"));
  EXPECT_THAT(result.matched, ElementsAre(1));
  EXPECT_EQ(result.path.length_ps, (44 + 40) * 1'000'000);
  EXPECT_EQ(MicrosAfter(ThreeRanks(), "scale category=communication 0.5"), 54);
  EXPECT_THAT(WhatIfError(ThreeRanks(), "scale link=0->0 2"), HasSubstr("nothing matches"));
}

TEST(RankLevelingTest, ARanksCompanyCommunicatesWithIt) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(ThreeRanks(), "scale with=1 0.5"));
  // The all-reduce on all three.
  EXPECT_THAT(result.matched, ElementsAre(3));
  EXPECT_EQ(result.path.length_ps, (44 + 10) * 1'000'000);
  EXPECT_THAT(WhatIfError(ThreeRanks(), "scale with=7 2"), HasSubstr("nothing matches"));
}

}  // namespace
}  // namespace meridian
