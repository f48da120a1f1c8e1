#include "astra_bridge/engine/dependency_graph.h"

#include "absl/status/status.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DependencyGraphTest, KnowsWhoWaits) {
  RankWorkload rank;
  rank.Add(ComputeNode(10, 0));
  rank.Add(ComputeNode(20, 0), {10});
  rank.Add(ComputeNode(30, 0), {10, 20, 10});
  ASSERT_OK_AND_ASSIGN(const DependencyGraph graph, DependencyGraph::Create(rank));
  EXPECT_EQ(graph.size(), 3u);
  EXPECT_EQ(graph.dependency_count(0), 0u);
  EXPECT_EQ(graph.dependency_count(2), 3u);
  EXPECT_THAT(graph.dependents(0), ElementsAre(1, 2, 2));
  EXPECT_THAT(graph.dependents(1), ElementsAre(2));
  EXPECT_THAT(graph.dependents(2), IsEmpty());
}

TEST(DependencyGraphTest, OrdersNodesByTheirIds) {
  RankWorkload rank;
  rank.Add(ComputeNode(7, 0), {3});
  rank.Add(ComputeNode(3, 0));
  rank.Add(ComputeNode(~uint64_t{0}, 0), {7});
  rank.Add(ComputeNode(0, 0));
  ASSERT_OK_AND_ASSIGN(const DependencyGraph graph, DependencyGraph::Create(rank));
  EXPECT_EQ(graph.priority(0), 2u);
  EXPECT_EQ(graph.priority(3), 0u);
  EXPECT_EQ(graph.node_at(1), 1u);
  EXPECT_THAT(graph.dependents(1), ElementsAre(0));
  EXPECT_THAT(graph.dependents(0), ElementsAre(2));
}

TEST(DependencyGraphTest, RefusesWhatDoesNotExistOrIsThereTwice) {
  RankWorkload dangling;
  dangling.Add(ComputeNode(1, 0), {99});
  EXPECT_THAT(DependencyGraph::Create(dangling),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 1 depends on node 99, which does not exist"));
  RankWorkload twice;
  twice.Add(ComputeNode(5, 0));
  twice.Add(ComputeNode(4, 0));
  twice.Add(ComputeNode(5, 0));
  EXPECT_THAT(DependencyGraph::Create(twice),
              StatusIs(absl::StatusCode::kInvalidArgument, "node 5: the id is there twice"));
}

TEST(DependencyGraphTest, FindsNodesByTheirIds) {
  RankWorkload rank;
  rank.Add(ComputeNode(7, 0));
  rank.Add(ComputeNode(3, 0));
  ASSERT_OK_AND_ASSIGN(const DependencyGraph graph, DependencyGraph::Create(rank));
  EXPECT_EQ(graph.Find(rank, 7), 0u);
  EXPECT_EQ(graph.Find(rank, 3), 1u);
  EXPECT_EQ(graph.Find(rank, 4), graph.size());
  EXPECT_EQ(graph.Find(rank, 8), graph.size());
}

TEST(DependencyGraphTest, MayBeEmpty) {
  ASSERT_OK_AND_ASSIGN(const DependencyGraph graph, DependencyGraph::Create(RankWorkload()));
  EXPECT_EQ(graph.size(), 0u);
}

}  // namespace
}  // namespace meridian
