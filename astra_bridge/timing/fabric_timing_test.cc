#include "astra_bridge/timing/fabric_timing.h"

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

// An edge takes its bytes in ns; together they take as much longer as there are edges. Keeps a
// diary of what it was asked.
class CountingTiming : public FabricTiming {
 public:
  CountingTiming(std::shared_ptr<const FabricSet> fabrics, std::shared_ptr<TimingCache> cache,
                 const std::string& version = "1")
      : FabricTiming({"counting", version}, BatchRule::kSimulatedTogether, std::move(fabrics),
                     std::move(cache)) {}

  std::vector<std::string> diary;
  absl::Status failure;

 protected:
  Times TogetherNs(const Fabric& /*fabric*/, absl::Span<const CommEdge> edges,
                   absl::Span<const double> isolated_ns) override {
    if (isolated_ns.empty()) {
      diary.push_back(CanonicalText(edges[0]));
      if (!failure.ok()) return failure;
      return std::vector<double>{static_cast<double>(edges[0].bytes)};
    }
    std::string entry;
    for (const CommEdge& edge : edges) entry += "[" + CanonicalText(edge) + "]";
    diary.push_back(entry);
    std::vector<double> ns;
    for (double one : isolated_ns) ns.push_back(one * static_cast<double>(edges.size()));
    return ns;
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
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing_.EstimateBatch({Edge(CollectiveKind::kAllReduce, 7, {3}),
                                              Edge(CollectiveKind::kAllReduce, 9, {0, 1})}));
  EXPECT_EQ(batch.seconds[0], 0);
  EXPECT_THAT(timing_.diary, ElementsAre("AR 9 0-1"));
  EXPECT_EQ(batch.inflation, 1);
}

TEST_F(FabricTimingTest, DevicesMustBeThere) {
  EXPECT_THAT(
      timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 1, {0, 8})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("edge AR 1 0,8: device 8 takes part, but network.yml has 8 NPUs")));
  EXPECT_THAT(timing_.EstimateBatch({Edge(CollectiveKind::kAllReduce, 0, {-1, 1})}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(FabricTimingTest, ErrorsOfTheEngineNameTheEdge) {
  timing_.failure = absl::AbortedError("crashed");
  EXPECT_THAT(timing_.EstimateEdge(Edge(CollectiveKind::kAllReduce, 1, {0, 1})),
              StatusIs(absl::StatusCode::kAborted, "edge AR 1 0-1: crashed"));
}

TEST_F(FabricTimingTest, ABatchIsRunInCanonicalOrderAndAnsweredInItsOwn) {
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing_.EstimateBatch({Edge(CollectiveKind::kAllReduce, 30, {0, 1}),
                                              Edge(CollectiveKind::kAllReduce, 10, {2, 3}),
                                              Edge(CollectiveKind::kAllReduce, 30, {0, 1})}));
  // Equal edges are asked for once.
  EXPECT_THAT(timing_.diary,
              ElementsAre("AR 10 2-3", "AR 30 0-1", "[AR 10 2-3][AR 30 0-1][AR 30 0-1]"));
  EXPECT_DOUBLE_EQ(batch.isolated[0].seconds, 30 * kNs);
  EXPECT_DOUBLE_EQ(batch.seconds[0], 90 * kNs);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 30 * kNs);
  EXPECT_DOUBLE_EQ(batch.seconds[2], 90 * kNs);
  EXPECT_DOUBLE_EQ(batch.makespan_seconds, 90 * kNs);
  EXPECT_DOUBLE_EQ(batch.inflation, 3);
  EXPECT_EQ(batch.rule, BatchRule::kSimulatedTogether);
}

TEST_F(FabricTimingTest, TheSameEdgeIsRunOnce) {
  CommEdge edge = Edge(CollectiveKind::kAllReduce, 30, {0, 1});
  EXPECT_OK(timing_.EstimateEdge(edge));
  edge.id = "again";
  EXPECT_OK(timing_.EstimateEdge(edge));
  EXPECT_OK(timing_.EstimateBatch({edge}));
  EXPECT_THAT(timing_.diary, ElementsAre("AR 30 0-1"));
  // A batch is another run, once.
  for (int i = 0; i < 2; ++i) EXPECT_OK(timing_.EstimateBatch({edge, edge}));
  EXPECT_THAT(timing_.diary, ElementsAre("AR 30 0-1", "[AR 30 0-1][AR 30 0-1]"));
}

TEST_F(FabricTimingTest, EdgesOnDifferentFabricsDoNotMeet) {
  CountingTiming timing(std::make_shared<FabricSet>(std::map<std::string, Fabric>{
                            {"a", FabricOf({Dimension(BlockShape::kRing, 4)})},
                            {"b", FabricOf({Dimension(BlockShape::kRing, 8)})}}),
                        nullptr);
  CommEdge on_a = Edge(CollectiveKind::kAllReduce, 10, {0, 1});
  on_a.topology_key = "a";
  CommEdge on_b = Edge(CollectiveKind::kAllReduce, 20, {0, 1});
  on_b.topology_key = "b";
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({on_a, on_b, on_b}));
  EXPECT_EQ(batch.networks[1], batch.networks[2]);
  EXPECT_NE(batch.networks[0], batch.networks[1]);
  EXPECT_DOUBLE_EQ(batch.seconds[0], 10 * kNs);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 40 * kNs);
  on_b.topology_key = "c";
  EXPECT_THAT(timing.EstimateBatch({on_a, on_b}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("topology_key c")));
}

TEST_F(FabricTimingTest, WhatTheCacheKnowsIsNotRunAgain) {
  const std::vector<CommEdge> edges = {Edge(CollectiveKind::kAllReduce, 10, {0, 1}),
                                       Edge(CollectiveKind::kAllGather, 20, {0, 1})};
  double makespan = 0;
  for (bool first : {true, false}) {
    CountingTiming timing(eight_, Cache());
    ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch(edges));
    EXPECT_EQ(timing.diary.size(), first ? 3u : 0u);
    if (first) makespan = batch.makespan_seconds;
    EXPECT_EQ(batch.makespan_seconds, makespan);
  }
  // Names do not matter, the order neither.
  CountingTiming timing(eight_, Cache());
  std::vector<CommEdge> renamed = {edges[1], edges[0]};
  renamed[0].id = "x";
  renamed[1].topology_key = "y";
  EXPECT_OK(timing.EstimateBatch(renamed));
  EXPECT_TRUE(timing.diary.empty());
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
  EXPECT_THAT(timing.EstimateBatch({edge}), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(timing.diary.size(), 1u);
  CountingTiming next(eight_, Cache());
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, next.EstimateEdge(edge));
  EXPECT_DOUBLE_EQ(estimate.seconds, 10 * kNs);
}

}  // namespace
}  // namespace meridian
