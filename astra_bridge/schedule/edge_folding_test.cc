#include "astra_bridge/schedule/edge_folding.h"

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
using ::testing::ElementsAre;

void Ignore(uint64_t, uint64_t) {}

CommEdge Named(const std::string& id, int64_t bytes) {
  CommEdge edge = Edge(CommKind::kAllReduce, bytes, {0, 1});
  edge.id = id;
  return edge;
}

// Edges a, b, c of 10, 20, 30 s alone, three times as long in company.
std::vector<double> Fold(const std::vector<Snapshot>& snapshots) {
  const std::vector<CommEdge> edges = {Named("a", 1), Named("b", 2), Named("c", 3)};
  FixedTiming timing(FixedTimes({{"a", 10}, {"b", 20}, {"c", 30}}, 3));
  SnapshotTimer timer(timing, edges, 1);
  EXPECT_OK(timer.TimeEdges(Ignore));
  const absl::StatusOr<std::vector<BatchIndex>> batches = timer.TimeSnapshots(snapshots, Ignore);
  EXPECT_OK(batches.status());
  return FoldEdgeTimes(timer, snapshots, *batches, edges.size());
}

TEST(EdgeFoldingTest, WeighsTheTimesInSnapshotsByTheTimeSpentThere) {
  // a: 4 of 10 alone, 6 with b: (4 * 10 + 6 * 30) / 10. b: 6 of 20 with a: (6 * 60 + 14 * 20) / 20.
  EXPECT_THAT(Fold({{0, 4, {0}}, {4, 10, {0, 1}}, {10, 24, {1}}}),
              ElementsAre(DoubleEq(22), DoubleEq(32), 30));
}

TEST(EdgeFoldingTest, OnlySharesOfTheTimeCount) {
  // The same twice as slowly: a schedule in which the edges are stretched already.
  EXPECT_THAT(Fold({{0, 8, {0}}, {8, 20, {0, 1}}, {20, 48, {1}}}),
              ElementsAre(DoubleEq(22), DoubleEq(32), 30));
}

TEST(EdgeFoldingTest, WhoIsAloneKeepsItsTimeToTheLastBit) {
  EXPECT_THAT(Fold({{0, 7, {0}}, {7, 11, {1}}, {11, 14, {2}}}), ElementsAre(10, 20, 30));
}

}  // namespace
}  // namespace meridian
