#include "astra_bridge/timing/analytical_timing.h"

#include <cmath>
#include <vector>

#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// 4 GiB/s are 4.294967296 bytes per ns; round numbers are easier to follow.
Fabric RoundFabric(BlockShape shape, int32_t npus) {
  NetworkDimension dimension = Dimension(shape, npus);
  dimension.bytes_per_ns = 4;
  dimension.latency_ns = 500;
  return FabricOf({dimension});
}

double Ns(const Fabric& fabric, const CommEdge& edge) {
  AnalyticalTiming timing(OneFabric(fabric));
  const absl::StatusOr<EdgeEstimate> estimate = timing.EstimateEdge(edge);
  EXPECT_OK(estimate);
  return estimate.ok() ? estimate->seconds * 1e9 : std::nan("");
}

// T(m) = 500 + 4000 / 4 / 4 = 750 with 4 ranks, d = 10.
TEST(AnalyticalTimingTest, RingFormulas) {
  const Fabric ring = RoundFabric(BlockShape::kRing, 4);
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kAllReduce, 4000, Ranks(4))), 10 + 6 * (750 + 10));
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kReduceScatter, 4000, Ranks(4))),
                   10 + 3 * (750 + 10));
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kAllToAll, 4000, Ranks(4))), 10 + 6 * (750 + 10));
  // Every message carries the whole shard: 500 + 4000 / 4.
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kAllGather, 4000, Ranks(4))),
                   10 + 3 * (1500 + 10));
}

TEST(AnalyticalTimingTest, DirectFormulas) {
  const Fabric full = RoundFabric(BlockShape::kFullyConnected, 4);
  EXPECT_DOUBLE_EQ(Ns(full, Edge(CollectiveKind::kAllReduce, 4000, Ranks(4))), 3 * 10 + 2 * 750);
  EXPECT_DOUBLE_EQ(Ns(full, Edge(CollectiveKind::kReduceScatter, 4000, Ranks(4))), 2 * 10 + 750);
  EXPECT_DOUBLE_EQ(Ns(full, Edge(CollectiveKind::kAllGather, 4000, Ranks(4))), 2 * 10 + 1500);
  // Two links to and from a switch.
  EXPECT_DOUBLE_EQ(
      Ns(RoundFabric(BlockShape::kSwitch, 4), Edge(CollectiveKind::kAllGather, 4000, Ranks(4))),
      2 * 10 + 2000);
}

TEST(AnalyticalTimingTest, HalvingDoublingFormulas) {
  Fabric full = RoundFabric(BlockShape::kFullyConnected, 4);
  UseAlgorithm("halvingDoubling", &full);
  // Messages of 2000, 1000, 1000, 2000 bytes; the all-gather's 4000, 8000.
  EXPECT_DOUBLE_EQ(Ns(full, Edge(CollectiveKind::kAllReduce, 4000, Ranks(4))),
                   10 + 2 * (500 + 500 + 10) + 2 * (500 + 250 + 10));
  EXPECT_DOUBLE_EQ(Ns(full, Edge(CollectiveKind::kAllGather, 4000, Ranks(4))),
                   10 + (500 + 1000 + 10) + (500 + 2000 + 10));
}

TEST(AnalyticalTimingTest, PointToPointPaysEveryLinkOnce) {
  EXPECT_DOUBLE_EQ(
      Ns(RoundFabric(BlockShape::kRing, 8), Edge(CollectiveKind::kPointToPoint, 4000, {1, 6})),
      3 * 500 + 1000);
}

TEST(AnalyticalTimingTest, PointToPointPaysTheLowestDimensionThatDiffers) {
  NetworkDimension full = RoundFabric(BlockShape::kFullyConnected, 4).network.dimensions[0];
  NetworkDimension slow = RoundFabric(BlockShape::kSwitch, 2).network.dimensions[0];
  slow.bytes_per_ns = 1;
  slow.latency_ns = 3000;
  const Fabric fabric = FabricOf({full, slow});
  EXPECT_DOUBLE_EQ(Ns(fabric, Edge(CollectiveKind::kPointToPoint, 1000, {1, 5})), 2 * 3000 + 1000);
  EXPECT_DOUBLE_EQ(Ns(fabric, Edge(CollectiveKind::kPointToPoint, 1000, {1, 6})), 500 + 250);
}

TEST(AnalyticalTimingTest, PartsOfTheRanksHaveTheirOwnEndpointDelay) {
  Fabric ring = RoundFabric(BlockShape::kRing, 8);
  ring.system.endpoint_delay_ns = 1000;
  // Ranks 0, 2, 4, 6 are two links apart: T = 2 * 500 + 4000 / 4 / 4.
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kReduceScatter, 4000, {0, 2, 4, 6})),
                   10 + 3 * (1250 + 10));
}

TEST(AnalyticalTimingTest, ChunksTakeTurns) {
  Fabric ring = RoundFabric(BlockShape::kRing, 4);
  ring.system.preferred_dataset_splits = 4;
  // Four chunks of 1000: T(m) = 500 + 250 / 4.
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kReduceScatter, 4000, Ranks(4))),
                   4 * (10 + 3 * (562.5 + 10)));
  ring.system.active_chunks_per_dimension = 2;
  EXPECT_DOUBLE_EQ(Ns(ring, Edge(CollectiveKind::kReduceScatter, 4000, Ranks(4))),
                   2 * (10 + 3 * (562.5 + 10)));
}

TEST(AnalyticalTimingTest, EdgesDoNotSlowEachOtherDown) {
  AnalyticalTiming timing(OneFabric(RoundFabric(BlockShape::kRing, 4)));
  const CommEdge edge = Edge(CollectiveKind::kAllReduce, 4000, Ranks(4));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({edge, edge}));
  EXPECT_EQ(batch.rule, BatchRule::kIndependent);
  EXPECT_EQ(batch.inflation, 1);
  EXPECT_DOUBLE_EQ(batch.makespan_seconds, 4570e-9);
}

TEST(AnalyticalTimingTest, RefusesWhatTheAlgorithmCannot) {
  Fabric ring = RoundFabric(BlockShape::kRing, 6);
  for (const char* algorithm : {"halvingDoubling", "doubleBinaryTree"}) {
    UseAlgorithm(algorithm, &ring);
    AnalyticalTiming timing(OneFabric(ring));
    EXPECT_THAT(timing.EstimateEdge(Edge(CollectiveKind::kAllReduce, 4000, Ranks(6))),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("power of two, not 6")));
  }
}

}  // namespace
}  // namespace meridian
