#include "trace_alignment/run/waiting_summary.h"

#include <cstdint>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

TEST(WaitingSummaryTest, RanksThatKeepTheOthersWaitingComeFirst) {
  RunBuilder builder(3);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1, 2}});
  // Rank 2 is last by 5 ms, then by 7 ms, of rank 0 at 0 and rank 1 at 1; then rank 1 by 9 and 4.
  constexpr int64_t kMs = 1'000'000'000;
  for (int64_t repeat = 0; repeat < 2; ++repeat) {
    const int64_t base_ps = 1000 * kMs * repeat;
    builder.Add({op, repeat, 0, base_ps, base_ps + 100 * kMs});
    builder.Add({op, repeat, 1, base_ps + kMs, base_ps + 100 * kMs});
    builder.Add({op, repeat, 2, base_ps + (5 + 2 * repeat) * kMs, base_ps + 100 * kMs});
  }
  builder.Add({op, 2, 0, 2000 * kMs, 2100 * kMs});
  builder.Add({op, 2, 1, 2009 * kMs, 2100 * kMs});
  builder.Add({op, 2, 2, 2005 * kMs, 2100 * kMs});
  // Without a member nobody knows who was last.
  builder.Add({op, 3, 0, 3000 * kMs, 3100 * kMs});
  ResolvedRun resolved = builder.Resolve();
  CollectiveRun run;
  run.profiles = std::move(resolved.profiles);
  run.ranks = std::move(resolved.ranks);
  run.runs = std::move(resolved.runs);
  ASSERT_OK_AND_ASSIGN(run.table, BuildCollectiveTable(run.profiles, run.ranks, run.runs));
  CombineReport report;
  DescribeWaiting(run.table, run, &report);
  ASSERT_EQ(report.ranks_size(), 3);
  EXPECT_EQ(report.ranks(0).rank(), 2);
  EXPECT_EQ(report.ranks(0).last(), 2);
  EXPECT_EQ(report.ranks(0).collectives(), 3);
  EXPECT_NEAR(report.ranks(0).caused_wait_ms(), (5 + 4) + (7 + 6), 1e-6);
  EXPECT_NEAR(report.ranks(0).waited_ms(), 4, 1e-6);
  EXPECT_EQ(report.ranks(1).rank(), 1);
  EXPECT_EQ(report.ranks(1).last(), 1);
  EXPECT_NEAR(report.ranks(1).caused_wait_ms(), 9 + 4, 1e-6);
  EXPECT_EQ(report.ranks(2).rank(), 0);
  EXPECT_EQ(report.ranks(2).last(), 0);
  EXPECT_EQ(report.happens_before().incomplete(), 1);
  EXPECT_NEAR(report.wall_ms(), 2100, 1e-6);
  ASSERT_EQ(report.transfers_size(), 1);
  EXPECT_NEAR(report.transfers(0).transfer_ms(), 93, 1e-6);
}

}  // namespace
}  // namespace meridian
