#include "astra_bridge/timing/network_timing.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1024 * 1024;

double Seconds(const NetworkTiming& timing, const CommEdge& edge) {
  const absl::StatusOr<double> seconds = timing(edge);
  EXPECT_OK(seconds);
  return seconds.value_or(std::nan(""));
}

NetworkTiming Embedded(Fabric fabric, Congestion congestion = Congestion::kAware) {
  return EmbeddedTiming(OneFabric(std::move(fabric)), congestion);
}

Fabric Ring(int32_t npus) { return FabricOf({Dimension(BlockShape::kRing, npus)}); }

// Bytes -> cycles -> seconds: 1 MiB at 50 GB/s (of 2^30 bytes) is 19531.25 ns, 500 ns of latency
// come to that, and whole nanoseconds are kept.
TEST(EmbeddedTimingTest, UnitCanary) {
  const NetworkTiming timing = Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 2)}));
  EXPECT_DOUBLE_EQ(Seconds(timing, Edge(CollectiveKind::kPointToPoint, kMiB, {0, 1})), 20031e-9);
}

// A run of AstraSim itself: ring all-reduce of 1 MiB on a ring of 4, reductions at 1600 GB/s.
TEST(EmbeddedTimingTest, EqualsAstraSim) {
  Fabric fabric = Ring(4);
  fabric.system.local_memory_bandwidth = 1600;
  for (Congestion congestion : {Congestion::kAware, Congestion::kUnaware}) {
    const NetworkTiming timing = Embedded(fabric, congestion);
    EXPECT_DOUBLE_EQ(Seconds(timing, Edge(CollectiveKind::kAllReduce, kMiB, Ranks(4))), 33829e-9);
  }
}

// 2 (n-1) messages of 1/n each: the share of bandwidth tends to 2, the latency grows with n.
TEST(EmbeddedTimingTest, AnAllReduceOfAMebibyteScalesWithTheRanks) {
  double before = 0;
  for (int32_t n : {2, 4, 8, 16, 32, 64}) {
    const NetworkTiming timing =
        Embedded(Ring(n), n == 2 ? Congestion::kUnaware : Congestion::kAware);
    const double seconds = Seconds(timing, Edge(CollectiveKind::kAllReduce, kMiB, Ranks(n)));
    EXPECT_GT(seconds, before);
    const double steps = 2 * (n - 1);
    const double formula_ns = 10 + steps * (500 + 19531.25 / n + 10);
    EXPECT_NEAR(seconds * 1e9, formula_ns, steps);
    before = seconds;
  }
}

TEST(EmbeddedTimingTest, AnAllGatherOfFourTakesThreeTimesAsLongOnARing) {
  const NetworkTiming full = Embedded(FabricOf({Dimension(BlockShape::kFullyConnected, 4)}));
  const CommEdge edge = Edge(CollectiveKind::kAllGather, 64 * kMiB, Ranks(4));
  EXPECT_NEAR(Seconds(Embedded(Ring(4)), edge) / Seconds(full, edge), 3, 0.01);
}

TEST(EmbeddedTimingTest, WhatCannotRunIsAnErrorThatNamesTheEdge) {
  Fabric fabric = Ring(6);
  UseAlgorithm("halvingDoubling", &fabric);
  EXPECT_THAT(Embedded(fabric)(Edge(CollectiveKind::kAllReduce, kMiB, Ranks(6))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("edge AR 1048576 0-5")));
}

TEST(EmbeddedTimingTest, EdgesThatMoveNothingTakeNoTime) {
  const NetworkTiming timing = Embedded(Ring(8));
  EXPECT_EQ(Seconds(timing, Edge(CollectiveKind::kAllReduce, 0, {0, 1})), 0);
  EXPECT_EQ(Seconds(timing, Edge(CollectiveKind::kAllReduce, 7, {3})), 0);
}

TEST(EmbeddedTimingTest, DevicesMustBeThere) {
  const NetworkTiming timing = Embedded(Ring(8));
  EXPECT_THAT(
      timing(Edge(CollectiveKind::kAllReduce, 1, {0, 8})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("edge AR 1 0,8: device 8 takes part, but network.yml has 8 NPUs")));
  EXPECT_THAT(timing(Edge(CollectiveKind::kAllReduce, 0, {-1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EmbeddedTimingTest, TopologiesThatAreNotThereAreNamed) {
  const NetworkTiming timing = EmbeddedTiming(
      std::make_shared<FabricSet>(std::map<std::string, Fabric>{{"a", Ring(4)}, {"b", Ring(8)}}),
      Congestion::kAware);
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 7});
  edge.topology_key = "b";
  EXPECT_OK(timing(edge));
  edge.topology_key = "c";
  EXPECT_THAT(timing(edge),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("topology_key c")));
}

class CachedTimingTest : public ::testing::Test {
 protected:
  // Times the edge and returns whether the cache knew it.
  bool IsKnown(Fabric fabric, Congestion congestion, const CommEdge& edge) {
    const auto cache = std::make_shared<TimingCache>(FileSystem::Posix(), directory_.path(), "p");
    EXPECT_OK(EmbeddedTiming(OneFabric(std::move(fabric)), congestion, cache)(edge));
    return cache->hits() == 1;
  }

  const TemporaryDirectory directory_;
};

TEST_F(CachedTimingTest, WhatTheCacheKnowsIsNotRunAgain) {
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  EXPECT_FALSE(IsKnown(Ring(8), Congestion::kAware, edge));
  // Names do not matter.
  edge.id = "x";
  edge.topology_key = "y";
  EXPECT_TRUE(IsKnown(Ring(8), Congestion::kAware, edge));
}

TEST_F(CachedTimingTest, AnotherEngineOrFabricIsAnotherTime) {
  const CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  EXPECT_FALSE(IsKnown(Ring(8), Congestion::kAware, edge));
  EXPECT_FALSE(IsKnown(Ring(8), Congestion::kUnaware, edge));
  EXPECT_FALSE(IsKnown(FabricOf({Dimension(BlockShape::kSwitch, 8)}), Congestion::kAware, edge));
}

TEST(EstimateEdgesTest, EdgesThatAreAlikeAreTimedOnce) {
  std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 30, {0, 1}),
                                 Edge(CollectiveKind::kAllReduce, 40, {0, 1}),
                                 Edge(CollectiveKind::kAllReduce, 30, {0, 1})};
  edges[2].id = "again";
  std::vector<std::string> asked;
  std::vector<uint64_t> steps;
  const NetworkTiming timing = [&](const CommEdge& edge) {
    asked.push_back(edge.id);
    return static_cast<double>(edge.bytes);
  };
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> seconds,
      EstimateEdges(timing, edges, [&](uint64_t timed) { steps.push_back(timed); }));
  EXPECT_THAT(seconds, ElementsAre(30, 40, 30));
  EXPECT_THAT(asked, ElementsAre("AR 30 0-1", "AR 40 0-1"));
  EXPECT_THAT(steps, ElementsAre(1, 2));
}

}  // namespace
}  // namespace meridian
