#include "astra_bridge/schedule/edge_folding.h"

#include <vector>

#include "astra_bridge/schedule/testing/timed_edges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

std::vector<double> Fold(const std::vector<Snapshot>& snapshots) {
  TimedEdges edges;
  return FoldEdgeTimes(edges.timer(), snapshots, edges.Time(snapshots), edges.size());
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
