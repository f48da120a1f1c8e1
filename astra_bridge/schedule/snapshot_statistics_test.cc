#include "astra_bridge/schedule/snapshot_statistics.h"

#include <limits>
#include <string>
#include <vector>

#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void Ignore(uint64_t, uint64_t) {}

CommEdge Named(const std::string& id, int64_t bytes) {
  CommEdge edge = Edge(CommKind::kAllReduce, bytes, {0, 1});
  edge.id = id;
  return edge;
}

// Edges a, b, c of 10, 20, 30 s alone, three times as long in company.
class SnapshotStatisticsTest : public ::testing::Test {
 protected:
  SnapshotStatisticsTest() { EXPECT_OK(timer_.TimeEdges(Ignore)); }

  std::vector<BatchIndex> Time(const std::vector<Snapshot>& snapshots) {
    const absl::StatusOr<std::vector<BatchIndex>> batches = timer_.TimeSnapshots(snapshots, Ignore);
    EXPECT_OK(batches.status());
    return *batches;
  }

  const std::vector<CommEdge> edges_ = {Named("a", 1), Named("b", 2), Named("c", 3)};
  FixedTiming timing_{FixedTimes({{"a", 10}, {"b", 20}, {"c", 30}}, 3)};
  SnapshotTimer timer_{timing_, edges_, 1};
};

TEST_F(SnapshotStatisticsTest, InflationIsWeighedByTime) {
  // Of a and b: 60 s, 3 times the longest and twice the sum, for 6 of 10 ns.
  const std::vector<Snapshot> snapshots = {{0, 4, {0}}, {4, 10, {0, 1}}};
  const SnapshotInflation inflation = SummariseInflation(timer_, snapshots, Time(snapshots));
  EXPECT_EQ(inflation.contended, 1);
  EXPECT_THAT(inflation.over_longest, DoubleEq(2.2));
  EXPECT_THAT(inflation.over_sum, DoubleEq(1.6));
  EXPECT_THAT(inflation.max_over_longest, DoubleEq(3));
}

TEST_F(SnapshotStatisticsTest, WithoutSnapshotsNothingIsInflated) {
  const SnapshotInflation inflation = SummariseInflation(timer_, {}, {});
  EXPECT_EQ(inflation.contended, 0);
  EXPECT_EQ(inflation.over_longest, 1);
  EXPECT_EQ(inflation.over_sum, 1);
  EXPECT_EQ(inflation.max_over_longest, 1);
  EXPECT_THAT(SlowestBatches(timer_, {}, {}, 5), IsEmpty());
}

TEST_F(SnapshotStatisticsTest, TheSlowestAreListedOnceEach) {
  Time({{0, 9, {0, 2}}});  // Of an earlier extraction.
  const std::vector<Snapshot> snapshots = {
      {0, 4, {0, 1}}, {4, 10, {1, 2}}, {10, 15, {0, 1}}, {15, 99, {2}}};
  const std::vector<BatchIndex> batches = Time(snapshots);
  const std::vector<BatchUse> slowest = SlowestBatches(timer_, snapshots, batches, 5);
  ASSERT_THAT(slowest, SizeIs(2));
  EXPECT_EQ(slowest[0].batch, batches[1]);
  EXPECT_EQ(slowest[0].first_snapshot, 1);
  EXPECT_EQ(slowest[0].occurrences, 1);
  EXPECT_EQ(slowest[0].total_ns, 6);
  EXPECT_EQ(slowest[1].batch, batches[0]);
  EXPECT_EQ(slowest[1].first_snapshot, 0);
  EXPECT_EQ(slowest[1].occurrences, 2);
  EXPECT_EQ(slowest[1].total_ns, 9);
  EXPECT_THAT(SlowestBatches(timer_, snapshots, batches, 1), SizeIs(1));
}

TEST_F(SnapshotStatisticsTest, TotalsStopAtTheLargestNumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<Snapshot> snapshots = {{0, kMost, {0, 1}}, {0, kMost, {0, 1}}};
  EXPECT_EQ(SlowestBatches(timer_, snapshots, Time(snapshots), 1)[0].total_ns, kMost);
}

}  // namespace
}  // namespace meridian
