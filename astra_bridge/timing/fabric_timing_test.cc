#include "astra_bridge/timing/fabric_timing.h"

#include <map>
#include <memory>
#include <string>
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

constexpr double kNs = 1e-9;

// An edge takes its bytes in ns. Keeps a diary of what it was asked.
class CountingTiming : public FabricTiming {
 public:
  CountingTiming(std::shared_ptr<const FabricSet> fabrics, std::shared_ptr<TimingCache> cache,
                 const std::string& version = "1")
      : FabricTiming({"counting", version}, std::move(fabrics), std::move(cache)) {}

  std::vector<std::string> diary;
  absl::Status failure;

 protected:
  absl::StatusOr<double> AloneNs(const Fabric& /*fabric*/, const CommEdge& edge) override {
    diary.push_back(CanonicalText(edge));
    if (!failure.ok()) return failure;
    return static_cast<double>(edge.bytes);
  }
};

class FabricTimingTest : public ::testing::Test {
 protected:
  std::shared_ptr<TimingCache> Cache() {
    return std::make_shared<TimingCache>(FileSystem::Posix(), directory_.path());
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<const FabricSet> eight_ =
      OneFabric(FabricOf({Dimension(BlockShape::kRing, 8)}));
  CountingTiming timing_{eight_, nullptr};
};

TEST_F(FabricTimingTest, SecondsAreNanosecondsTimesABillionth) {
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate,
                       timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 1500, {0, 1})));
  EXPECT_DOUBLE_EQ(estimate.seconds, 1.5e-6);
  EXPECT_FALSE(estimate.is_fallback());
}

TEST_F(FabricTimingTest, EdgesThatMoveNothingTakeNoTime) {
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate empty,
                       timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 0, {0, 1})));
  EXPECT_EQ(empty.seconds, 0);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate alone,
                       timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 7, {3})));
  EXPECT_EQ(alone.seconds, 0);
  EXPECT_TRUE(timing_.diary.empty());
}

TEST_F(FabricTimingTest, DevicesMustBeThere) {
  EXPECT_THAT(
      timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 1, {0, 8})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("edge AR 1 0,8: device 8 takes part, but network.yml has 8 NPUs")));
  EXPECT_THAT(timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 0, {-1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FabricTimingTest, ErrorsOfTheEngineNameTheEdge) {
  timing_.failure = absl::AbortedError("crashed");
  EXPECT_THAT(timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 1, {0, 1})),
              StatusIs(absl::StatusCode::kAborted, "edge AR 1 0-1: crashed"));
}

TEST_F(FabricTimingTest, TheSameEdgeIsRunOnce) {
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 30, {0, 1});
  EXPECT_OK(timing_.EstimateEdge(edge));
  edge.id = "again";
  EXPECT_OK(timing_.EstimateEdge(edge));
  EXPECT_THAT(timing_.diary, ElementsAre("AR 30 0-1"));
}

TEST_F(FabricTimingTest, TopologiesThatAreNotThereAreNamed) {
  CountingTiming timing(std::make_shared<FabricSet>(std::map<std::string, Fabric>{
                            {"a", FabricOf({Dimension(BlockShape::kRing, 4)})},
                            {"b", FabricOf({Dimension(BlockShape::kRing, 8)})}}),
                        nullptr);
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 7});
  edge.topology_key = "b";
  EXPECT_OK(timing.EstimateEdge(edge));
  edge.topology_key = "c";
  EXPECT_THAT(timing.EstimateEdge(edge),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("topology_key c")));
}

TEST_F(FabricTimingTest, WhatTheCacheKnowsIsNotRunAgain) {
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  for (bool first : {true, false}) {
    CountingTiming timing(eight_, Cache());
    ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, timing.EstimateEdge(edge));
    EXPECT_DOUBLE_EQ(estimate.seconds, 10 * kNs);
    EXPECT_EQ(timing.diary.size(), first ? 1u : 0u);
    // Names do not matter.
    edge.id = "x";
    edge.topology_key = "y";
  }
}

TEST_F(FabricTimingTest, AnotherVersionOrFabricIsAnotherTime) {
  const CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  CountingTiming first(eight_, Cache());
  EXPECT_OK(first.EstimateEdge(edge));
  CountingTiming newer(eight_, Cache(), "2");
  EXPECT_OK(newer.EstimateEdge(edge));
  EXPECT_EQ(newer.diary.size(), 1u);
  CountingTiming elsewhere(OneFabric(FabricOf({Dimension(BlockShape::kSwitch, 8)})), Cache());
  EXPECT_OK(elsewhere.EstimateEdge(edge));
  EXPECT_EQ(elsewhere.diary.size(), 1u);
}

TEST_F(FabricTimingTest, AFailureIsNotTriedAgainButIsNotInTheCache) {
  const CommEdge edge = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  CountingTiming timing(eight_, Cache());
  timing.failure = absl::AbortedError("crashed");
  EXPECT_FALSE(timing.EstimateEdge(edge).ok());
  timing.failure = absl::OkStatus();
  CommEdge alike = edge;
  alike.id = "alike";
  EXPECT_THAT(timing.EstimateEdge(alike),
              StatusIs(absl::StatusCode::kAborted, "edge alike: crashed"));
  EXPECT_EQ(timing.diary.size(), 1u);
  CountingTiming next(eight_, Cache());
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, next.EstimateEdge(edge));
  EXPECT_DOUBLE_EQ(estimate.seconds, 10 * kNs);
}

}  // namespace
}  // namespace meridian
