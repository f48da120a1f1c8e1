#include "chakra_export/graph/graph_order.h"

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using EdgeSet = std::set<std::pair<NodeIndex, NodeIndex>>;

EdgeSet Edges(const ExecutionGraph& graph) {
  EdgeSet edges;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    for (const NodeIndex source : graph.dependencies(node)) edges.insert({source, node});
  }
  return edges;
}

// Which nodes each node waits for, over any number of edges.
std::vector<std::set<NodeIndex>> Ancestors(const ExecutionGraph& graph) {
  std::vector<std::set<NodeIndex>> ancestors(graph.node_count());
  // As often as the longest path has edges.
  for (size_t round = 0; round < graph.node_count(); ++round) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      for (const NodeIndex source : graph.dependencies(node)) {
        ancestors[node].insert(source);
        ancestors[node].insert(ancestors[source].begin(), ancestors[source].end());
      }
    }
  }
  return ancestors;
}

// Edges that no other path replaces.
EdgeSet NeededEdges(const ExecutionGraph& graph) {
  const std::vector<std::set<NodeIndex>> ancestors = Ancestors(graph);
  EdgeSet needed = Edges(graph);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    for (const NodeIndex source : graph.dependencies(node)) {
      for (const NodeIndex other : graph.dependencies(node)) {
        if (ancestors[other].count(source) > 0) needed.erase({source, node});
      }
    }
  }
  return needed;
}

TEST(TransitiveReductionTest, RemovesExactlyWhatIsImplied) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    RandomGraphOptions options;
    options.ranks = 1 + round % 2;
    options.nodes = 12;
    options.edge_probability = 0.1 * (1 + round % 6);
    ExecutionGraph graph = RandomExecutionGraph(options, random);
    const EdgeSet needed = NeededEdges(graph);
    const size_t edges = graph.dependency_count();
    EXPECT_THAT(RemoveTransitiveEdges(&graph), IsOkAndHolds(edges - needed.size()));
    EXPECT_EQ(Edges(graph), needed);
  }
}

TEST(TransitiveReductionTest, WithTooFewChainsOnlySomeGo) {
  std::mt19937_64 random(2);
  size_t removed_in_all = 0;
  for (int round = 0; round < 300; ++round) {
    RandomGraphOptions options;
    options.nodes = 12;
    ExecutionGraph graph = RandomExecutionGraph(options, random);
    const std::vector<std::set<NodeIndex>> before = Ancestors(graph);
    ASSERT_OK_AND_ASSIGN(const size_t removed, RemoveTransitiveEdges(&graph, 1 + round % 3));
    removed_in_all += removed;
    EXPECT_EQ(Ancestors(graph), before);
  }
  EXPECT_GT(removed_in_all, 300);
}

TEST(TransitiveReductionTest, KeepsTheKindsOfWhatStays) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.resource = builder.AddResource({});
  for (node.id = 0; node.id < 3; ++node.id) builder.AddNode(node);
  builder.AddDependency(1, 0, EdgeKind::kLaunch);
  builder.AddDependency(2, 0, EdgeKind::kStream);
  builder.AddDependency(2, 1, EdgeKind::kSync);
  ExecutionGraph graph = std::move(builder).Build();
  EXPECT_THAT(RemoveTransitiveEdges(&graph), IsOkAndHolds(1));
  EXPECT_EQ(graph.dependency_kinds(1)[0], EdgeKind::kLaunch);
  EXPECT_THAT(graph.dependencies(2), ::testing::ElementsAre(1));
  EXPECT_EQ(graph.dependency_kinds(2)[0], EdgeKind::kSync);
}

TEST(TransitiveReductionTest, ACycleIsAnError) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.resource = builder.AddResource({});
  builder.AddNode(node);
  builder.AddDependency(0, 0, EdgeKind::kData);
  ExecutionGraph graph = std::move(builder).Build();
  EXPECT_THAT(RemoveTransitiveEdges(&graph), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace meridian
