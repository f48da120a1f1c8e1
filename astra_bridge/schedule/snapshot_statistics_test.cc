#include "astra_bridge/schedule/snapshot_statistics.h"

#include <limits>
#include <vector>

#include "astra_bridge/schedule/testing/timed_edges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SnapshotStatisticsTest, InflationIsWeighedByTime) {
  TimedEdges edges;
  // Of a and b: 60 s, 3 times the longest and twice the sum, for 6 of 10 ns.
  const std::vector<Snapshot> snapshots = {{0, 4, {0}}, {4, 10, {0, 1}}};
  const SnapshotInflation inflation =
      SummariseInflation(edges.timer(), snapshots, edges.Time(snapshots));
  EXPECT_EQ(inflation.contended, 1);
  EXPECT_THAT(inflation.over_longest, DoubleEq(2.2));
  EXPECT_THAT(inflation.over_sum, DoubleEq(1.6));
  EXPECT_THAT(inflation.max_over_longest, DoubleEq(3));
}

TEST(SnapshotStatisticsTest, WithoutSnapshotsNothingIsInflated) {
  TimedEdges edges;
  const SnapshotInflation inflation = SummariseInflation(edges.timer(), {}, {});
  EXPECT_EQ(inflation.contended, 0);
  EXPECT_EQ(inflation.over_longest, 1);
  EXPECT_EQ(inflation.over_sum, 1);
  EXPECT_EQ(inflation.max_over_longest, 1);
  EXPECT_THAT(SlowestBatches(edges.timer(), {}, {}, 5), IsEmpty());
}

TEST(SnapshotStatisticsTest, TheSlowestAreListedOnceEach) {
  TimedEdges edges;
  edges.Time({{0, 9, {0, 2}}});  // Of an earlier extraction.
  const std::vector<Snapshot> snapshots = {
      {0, 4, {0, 1}}, {4, 10, {1, 2}}, {10, 15, {0, 1}}, {15, 99, {2}}};
  const std::vector<BatchIndex> batches = edges.Time(snapshots);
  const std::vector<BatchUse> slowest = SlowestBatches(edges.timer(), snapshots, batches, 5);
  ASSERT_THAT(slowest, SizeIs(2));
  EXPECT_EQ(slowest[0].batch, batches[1]);
  EXPECT_EQ(slowest[0].first_snapshot, 1);
  EXPECT_EQ(slowest[0].occurrences, 1);
  EXPECT_EQ(slowest[0].total_ns, 6);
  EXPECT_EQ(slowest[1].batch, batches[0]);
  EXPECT_EQ(slowest[1].first_snapshot, 0);
  EXPECT_EQ(slowest[1].occurrences, 2);
  EXPECT_EQ(slowest[1].total_ns, 9);
  EXPECT_THAT(SlowestBatches(edges.timer(), snapshots, batches, 1), SizeIs(1));
}

TEST(SnapshotStatisticsTest, TotalsStopAtTheLargestNumber) {
  TimedEdges edges;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<Snapshot> snapshots = {{0, kMost, {0, 1}}, {0, kMost, {0, 1}}};
  EXPECT_EQ(SlowestBatches(edges.timer(), snapshots, edges.Time(snapshots), 1)[0].total_ns, kMost);
}

}  // namespace
}  // namespace meridian
