#include "chakra_export/graph/graph_order.h"

#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Edge {
  NodeIndex node;
  NodeIndex source;
};

// Nodes with the ids 0, 1, ...
ExecutionGraph MakeGraph(size_t nodes, const std::vector<Edge>& edges) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "n";
  node.resource = builder.AddResource({});
  for (size_t i = 0; i < nodes; ++i) {
    builder.AddNode(node);
    ++node.id;
  }
  for (const Edge& edge : edges) {
    builder.AddDependency(edge.node, edge.source, EdgeKind::kData);
  }
  return std::move(builder).Build();
}

TEST(TopologicalOrderTest, EveryNodeComesAfterWhatItWaitsFor) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    const ExecutionGraph graph = RandomExecutionGraph({}, random);
    ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, TopologicalOrder(graph));
    ASSERT_EQ(order.size(), graph.node_count());
    std::vector<size_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      for (const NodeIndex source : graph.dependencies(node)) {
        EXPECT_LT(place[source], place[node]);
      }
    }
    EXPECT_THAT(FindCycle(graph), IsEmpty());
  }
}

TEST(TopologicalOrderTest, NamesACycle) {
  // 0 -> 1 -> 2 -> 3 -> 1, and 3 -> 4.
  const ExecutionGraph graph = MakeGraph(5, {{1, 0}, {2, 1}, {3, 2}, {1, 3}, {4, 3}});
  EXPECT_THAT(FindCycle(graph), ElementsAre(1, 3, 2));
  EXPECT_THAT(TopologicalOrder(graph),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "a cycle: rank 0 node 1 (n) waits for rank 0 node 3 (n), which waits for "
                       "rank 0 node 2 (n), which waits for rank 0 node 1 (n)"));
}

TEST(TopologicalOrderTest, ANodeMayWaitForItself) {
  const ExecutionGraph graph = MakeGraph(2, {{1, 1}});
  EXPECT_THAT(FindCycle(graph), ElementsAre(1));
  EXPECT_THAT(TopologicalOrder(graph),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("node 1 (n) waits for rank 0 node 1 (n)")));
}

TEST(TopologicalOrderTest, ALongCycleIsShortened) {
  constexpr NodeIndex kNodes = 100000;
  std::vector<Edge> edges;
  for (NodeIndex node = 0; node < kNodes; ++node) edges.push_back({node, (node + 1) % kNodes});
  const ExecutionGraph graph = MakeGraph(kNodes, edges);
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  EXPECT_EQ(cycle.size(), kNodes);
  EXPECT_EQ(DescribeCycle(graph, cycle),
            "rank 0 node 0 (n) waits for rank 0 node 1 (n), which waits for rank 0 node 2 (n), "
            "which waits for rank 0 node 3 (n), which waits for rank 0 node 4 (n), which waits for "
            "99992 more, of which the last waits for rank 0 node 99997 (n), which waits for rank 0 "
            "node 99998 (n), which waits for rank 0 node 99999 (n), which waits for rank 0 node 0 "
            "(n)");
}

}  // namespace
}  // namespace meridian
