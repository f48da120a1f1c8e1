#include "chakra_export/graph/rank_activity.h"

#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The sketch of the header, from 100 on.
TEST(RankActivityTest, CommunicationThatNothingHidesIsExposed) {
  const RankActivity rank = SumActivity({{100, 160, false},
                                         {140, 220, true},
                                         {260, 340, false},
                                         {280, 310, true},
                                         // What overlaps its like counts once.
                                         {150, 200, true},
                                         {110, 120, false}},
                                        100);
  EXPECT_EQ(rank.span_ns, 240);
  EXPECT_EQ(rank.computing_ns, 140);
  EXPECT_EQ(rank.communicating_ns, 110);
  EXPECT_EQ(rank.exposed_ns, 60);
  EXPECT_EQ(rank.idle_ns(), 40);
}

TEST(RankActivityTest, ARankWithoutWorkIsIdle) {
  const RankActivity rank = SumActivity({}, 5);
  EXPECT_EQ(rank.span_ns, 0);
  EXPECT_EQ(rank.idle_ns(), 0);
  const RankActivity mean = MeanActivity({{rank, SumActivity({{0, 10, true}}, 0)}});
  EXPECT_EQ(mean.exposed_ns, 5);
}

ExecutionGraph Graph(int64_t start_of_second_ns) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "a";
  node.resource = builder.AddResource({0, ResourceKind::kCompute, 0});
  node.start_ns = 1000;
  node.duration_ns = 10;
  builder.AddNode(node);
  node.id = 1;
  node.resource = builder.AddResource({1, ResourceKind::kCompute, 0});
  node.start_ns = start_of_second_ns;
  builder.AddNode(node);
  return std::move(builder).Build();
}

TEST(RankActivityTest, ARunStartsWithItsFirstRank) {
  const std::vector<RankActivity> ranks = ActivityAt(Graph(1030), {1000, 1030}, {1010, 1040});
  ASSERT_THAT(ranks, SizeIs(2));
  EXPECT_EQ(ranks[0].span_ns, 10);
  EXPECT_EQ(ranks[1].span_ns, 40);
  EXPECT_EQ(ranks[1].idle_ns(), 30);
  EXPECT_THAT(ActivityAt(ExecutionGraphBuilder().Build(), {}, {}), IsEmpty());
}

TEST(MeasuredSpanTest, IsKnownWhereAllNodesHaveStarts) {
  EXPECT_EQ(MeasuredSpanNs(Graph(1030)), 40);
  EXPECT_EQ(MeasuredSpanNs(Graph(kNoTimeNs)), std::nullopt);
  EXPECT_EQ(MeasuredSpanNs(Graph(0)), std::nullopt);
  EXPECT_EQ(MeasuredSpanNs(ExecutionGraphBuilder().Build()), std::nullopt);
}

}  // namespace
}  // namespace meridian
