#include "trace_alignment/collectives/probe_free_alignment.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/real_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Rank 0 runs from 1000 * run to `end`; rank 1's clock is ahead by 500.
void AddExecution(uint32_t op, int64_t run, int64_t end_ps, int64_t lag_ps, RunBuilder* builder) {
  builder->Add({op, run, 0, 1000 * run, end_ps});
  builder->Add({op, run, 1, 1000 * run + 500, end_ps + 500 + lag_ps});
}

TEST(EndAgreementTest, IsFourTimesTheChangeFromExecutionToExecution) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  // Changes of 5, 12 and 8.
  AddExecution(op, 1, 1100, 0, &run);
  AddExecution(op, 2, 2100, 5, &run);
  AddExecution(op, 3, 3100, -7, &run);
  AddExecution(op, 4, 4100, 1, &run);
  EXPECT_THAT(EndTolerances(run.Build()), ElementsAre(48, 48, 48, 48));
}

TEST(EndAgreementTest, IsNotLessThanAFractionOfTheShortestDuration) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t i = 1; i <= 4; ++i) AddExecution(op, i, 1000 * i + 640, 0, &run);
  // 640 / 32.
  EXPECT_THAT(EndTolerances(run.Build()), ElementsAre(20, 20, 20, 20));
}

TEST(EndAgreementTest, SaysNothingAfterThreeExecutions) {
  RunBuilder run(2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t i = 1; i <= 3; ++i) AddExecution(op, i, 1000 * i + 640, 0, &run);
  EXPECT_THAT(EndTolerances(run.Build()), Each(kNoTolerance));
}

// Two ops of two executions are judged as one; one of four stays by itself.
TEST(EndAgreementTest, OpsWithFewExecutionsAreTakenTogether) {
  RunBuilder run(2);
  const uint32_t often = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t first = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t second = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  const uint32_t gather = run.AddOp(CollectiveKind::kAllGather, {{0, 1}});
  for (int64_t i = 1; i <= 4; ++i) AddExecution(often, i, 1000 * i + 100, i, &run);
  // Changes of 2, 3 and 5.
  AddExecution(first, 5, 5100, 0, &run);
  AddExecution(second, 6, 6100, 2, &run);
  AddExecution(first, 7, 7100, -1, &run);
  AddExecution(second, 8, 8100, 4, &run);
  AddExecution(gather, 9, 9100, 0, &run);
  EXPECT_THAT(EndTolerances(run.Build()), ElementsAre(4, 4, 4, 4, 20, 20, 20, 20, kNoTolerance));
}

TEST(EndAgreementTest, SaysNothingOfPermutes) {
  RunBuilder run(2);
  const uint32_t op = run.AddPairsOp(CollectiveKind::kCollectivePermute, {{0, 1}});
  for (int64_t i = 1; i <= 4; ++i) AddExecution(op, i, 1000 * i + 640, 0, &run);
  EXPECT_THAT(EndTolerances(run.Build()), Each(kNoTolerance));
}

// With two devices on one node, members come in the order of their starts.
TEST(EndAgreementTest, ComparesTheSameRanks) {
  RunBuilder run(1, /*devices_per_node=*/2);
  const uint32_t op = run.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  for (int64_t i = 1; i <= 4; ++i) {
    const int64_t first = i % 2;
    run.Add({op, i, first, 1000 * i, 1000 * i + 320 + 100 * first});
    run.Add({op, i, 1 - first, 1000 * i + 1, 1000 * i + 320 + 100 * (1 - first)});
  }
  // Rank 1 always ends 100 later, so nothing varies: 319 / 32.
  EXPECT_THAT(EndTolerances(run.Build()), Each(9));
}

// The evidence for the assumption: on true clocks, no member of any collective of any real run ends
// farther from another than half the tolerance.
TEST(EndAgreementTest, HoldsInRealRunsWithAFactorOfTwoToSpare) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  for (const RealRun& real : RealRuns()) {
    SCOPED_TRACE(real.folder);
    ASSERT_OK_AND_ASSIGN(const CollectiveTable table, ReadRealRun(*shared, real));
    const std::vector<int64_t> tolerances_ps = EndTolerances(table);
    int64_t known = 0;
    for (size_t i = 0; i < tolerances_ps.size(); ++i) {
      if (tolerances_ps[i] == kNoTolerance) continue;
      ++known;
      const CollectiveInstance& instance = table.instances()[i];
      int64_t first_end_ps = kMaxRunTimePs, last_end_ps = -kMaxRunTimePs;
      for (const CollectiveMember& member : table.MembersOf(instance)) {
        first_end_ps = std::min(first_end_ps, member.end_ps);
        last_end_ps = std::max(last_end_ps, member.end_ps);
      }
      EXPECT_LE(last_end_ps - first_end_ps, tolerances_ps[i] / 2)
          << DescribeInstance(table, instance);
    }
    EXPECT_GT(known, 0);
  }
}

}  // namespace
}  // namespace meridian
