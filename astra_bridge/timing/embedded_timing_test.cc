#include "astra_bridge/timing/embedded_timing.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * 1024;

double Seconds(NetworkTiming& timing, const CommEdge& edge) {
  const absl::StatusOr<EdgeEstimate> estimate = timing.EstimateEdge(edge);
  EXPECT_OK(estimate);
  return estimate.ok() ? estimate->seconds : std::nan("");
}

BatchEstimate Batch(NetworkTiming& timing, const std::vector<CommEdge>& edges) {
  const absl::StatusOr<BatchEstimate> batch = timing.EstimateBatch(edges);
  EXPECT_OK(batch);
  return batch.ok() ? *batch : BatchEstimate();
}

EmbeddedTiming Embedded(Fabric fabric, Congestion congestion) {
  return EmbeddedTiming(OneFabric(std::move(fabric)), congestion);
}

// Bytes -> cycles -> seconds: 1 MiB at 50 GB/s (of 2^30 bytes) is 19531.25 ns, 500 ns of latency
// come to that, and whole nanoseconds are kept.
TEST(EmbeddedTimingTest, UnitCanary) {
  EmbeddedTiming timing =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 2)}), Congestion::kAware);
  EXPECT_DOUBLE_EQ(Seconds(timing, Edge(CollectiveKind::kPointToPoint, kMiB, {0, 1})), 20031e-9);
}

// A run of AstraSim itself: ring all-reduce of 1 MiB on a ring of 4, reductions at 1600 GB/s.
TEST(EmbeddedTimingTest, EqualsAstraSim) {
  Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 4)});
  fabric.system.local_memory_bandwidth = 1600;
  for (Congestion congestion : {Congestion::kAware, Congestion::kUnaware}) {
    EmbeddedTiming timing = Embedded(fabric, congestion);
    EXPECT_DOUBLE_EQ(Seconds(timing, Edge(CollectiveKind::kAllReduce, kMiB, Ranks(4))), 33829e-9);
  }
}

TEST(EmbeddedTimingTest, TheNameTellsTheKindOfCongestion) {
  EXPECT_EQ(
      Embedded(FabricOf({Dimension(BlockShape::kRing, 4)}), Congestion::kUnaware).engine().name,
      "embedded, congestion-unaware");
}

// 2 (n-1) messages of 1/n each: the share of bandwidth tends to 2, the latency grows with n.
TEST(EmbeddedTimingTest, AnAllReduceOfAMebibyteScalesWithTheRanks) {
  double before = 0;
  for (int32_t n : {2, 4, 8, 16, 32, 64}) {
    EmbeddedTiming timing = Embedded(FabricOf({Dimension(BlockShape::kRing, n)}),
                                     n == 2 ? Congestion::kUnaware : Congestion::kAware);
    const double seconds = Seconds(timing, Edge(CollectiveKind::kAllReduce, kMiB, Ranks(n)));
    EXPECT_GT(seconds, before);
    const double steps = 2 * (n - 1);
    const double formula_ns = 10 + steps * (500 + 19531.25 / n + 10);
    EXPECT_NEAR(seconds * 1e9, formula_ns, steps);
    before = seconds;
  }
}

TEST(EmbeddedTimingTest, MessagesOverOneLinkTakeTurnsOnlyUnderCongestion) {
  const Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 8)});
  // Both use the link from 1 to 2: the first arrives there at 20031, while the second sends until
  // 4 * 19531.25 = 78125.
  const std::vector<CommEdge> pairs = {Edge(CollectiveKind::kPointToPoint, kMiB, {0, 2}),
                                       Edge(CollectiveKind::kPointToPoint, 4 * kMiB, {1, 2})};
  EmbeddedTiming aware = Embedded(fabric, Congestion::kAware);
  const BatchEstimate contended = Batch(aware, pairs);
  EXPECT_EQ(contended.rule, BatchRule::kSimulatedTogether);
  EXPECT_DOUBLE_EQ(contended.isolated[0].seconds, 2 * 20031e-9);
  EXPECT_DOUBLE_EQ(contended.isolated[1].seconds, 78625e-9);
  EXPECT_DOUBLE_EQ(contended.seconds[0], (78125 + 20031) * 1e-9);
  EXPECT_DOUBLE_EQ(contended.seconds[1], 78625e-9);
  EXPECT_DOUBLE_EQ(contended.inflation, 98156.0 / 78625.0);
  EmbeddedTiming unaware = Embedded(fabric, Congestion::kUnaware);
  EXPECT_EQ(Batch(unaware, pairs).inflation, 1.0);
}

TEST(EmbeddedTimingTest, TwoPairsOverOneLinkAreLongerThanOne) {
  EmbeddedTiming timing =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 4)}), Congestion::kAware);
  // The same link twice: 2 * 19531 ns of sending, one latency.
  const std::vector<CommEdge> same = {Edge(CollectiveKind::kPointToPoint, kMiB, {0, 1}),
                                      Edge(CollectiveKind::kPointToPoint, kMiB, {0, 1})};
  EXPECT_DOUBLE_EQ(Batch(timing, same).makespan_seconds, (19531 + 20031) * 1e-9);
  // Links of their own.
  const std::vector<CommEdge> apart = {Edge(CollectiveKind::kPointToPoint, kMiB, {0, 1}),
                                       Edge(CollectiveKind::kPointToPoint, kMiB, {2, 3})};
  EXPECT_DOUBLE_EQ(Batch(timing, apart).makespan_seconds, 20031e-9);
}

TEST(EmbeddedTimingTest, DisjointGroupsDoNotMeet) {
  EmbeddedTiming timing =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 8)}), Congestion::kAware);
  const std::vector<CommEdge> groups = {Edge(CollectiveKind::kAllReduce, 4 * kMiB, {0, 1, 2, 3}),
                                        Edge(CollectiveKind::kAllGather, kMiB, {4, 5, 6, 7})};
  const BatchEstimate batch = Batch(timing, groups);
  EXPECT_EQ(batch.inflation, 1.0);
  for (size_t i : {0, 1}) EXPECT_EQ(batch.seconds[i], batch.isolated[i].seconds);
}

TEST(EmbeddedTimingTest, AnAllGatherOfFourTakesThreeTimesAsLongOnARing) {
  EmbeddedTiming ring = Embedded(FabricOf({Dimension(BlockShape::kRing, 4)}), Congestion::kAware);
  EmbeddedTiming full =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 4)}), Congestion::kAware);
  const CommEdge edge = Edge(CollectiveKind::kAllGather, 64 * kMiB, Ranks(4));
  EXPECT_NEAR(Seconds(ring, edge) / Seconds(full, edge), 3, 0.01);
}

TEST(EmbeddedTimingTest, ABatchDoesNotDependOnOrderOrNames) {
  EmbeddedTiming timing = Embedded(FabricOf({Dimension(BlockShape::kRing, 8)}), Congestion::kAware);
  std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, kMiB, Ranks(8)),
                                 Edge(CollectiveKind::kAllToAll, 3 * kMiB, {1, 3, 5, 7}),
                                 Edge(CollectiveKind::kPointToPoint, kMiB, {6, 2})};
  const BatchEstimate forward = Batch(timing, edges);
  std::swap(edges[0], edges[2]);
  edges[0].id = "renamed";
  const BatchEstimate backward = Batch(timing, edges);
  EXPECT_EQ(forward.seconds[0], backward.seconds[2]);
  EXPECT_EQ(forward.seconds[1], backward.seconds[1]);
  EXPECT_EQ(forward.seconds[2], backward.seconds[0]);
}

TEST(EmbeddedTimingTest, HintsOfABatchHoldEdgeByEdge) {
  EmbeddedTiming timing =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 8)}), Congestion::kUnaware);
  CommEdge ring = Edge(CollectiveKind::kAllReduce, kMiB, Ranks(8));
  ring.hint = AlgorithmHint::kRing;
  CommEdge direct = ring;
  direct.hint = AlgorithmHint::kDirect;
  const BatchEstimate batch = Batch(timing, {ring, direct});
  EXPECT_EQ(batch.seconds[0], Seconds(timing, ring));
  EXPECT_EQ(batch.seconds[1], Seconds(timing, direct));
  EXPECT_GT(batch.seconds[0], batch.seconds[1]);
}

TEST(EmbeddedTimingTest, WhatCannotRunIsAnErrorThatNamesTheEdge) {
  Fabric fabric = FabricOf({Dimension(BlockShape::kRing, 6)});
  UseAlgorithm("halvingDoubling", &fabric);
  EmbeddedTiming timing = Embedded(fabric, Congestion::kAware);
  EXPECT_THAT(timing.EstimateEdge(Edge(CollectiveKind::kAllReduce, kMiB, Ranks(6))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("edge AR 1048576 0-5")));
}

}  // namespace
}  // namespace meridian
