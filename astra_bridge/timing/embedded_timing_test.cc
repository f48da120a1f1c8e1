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

TEST(EmbeddedTimingTest, AnAllGatherOfFourTakesThreeTimesAsLongOnARing) {
  EmbeddedTiming ring = Embedded(FabricOf({Dimension(BlockShape::kRing, 4)}), Congestion::kAware);
  EmbeddedTiming full =
      Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 4)}), Congestion::kAware);
  const CommEdge edge = Edge(CollectiveKind::kAllGather, 64 * kMiB, Ranks(4));
  EXPECT_NEAR(Seconds(ring, edge) / Seconds(full, edge), 3, 0.01);
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
