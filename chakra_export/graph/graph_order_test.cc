#include "chakra_export/graph/graph_order.h"

#include <algorithm>
#include <limits>
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

// Nodes with these durations and the ids 0, 1, ...
ExecutionGraph MakeGraph(const std::vector<int64_t>& durations_ns, const std::vector<Edge>& edges) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "n";
  node.resource = builder.AddResource({});
  for (const int64_t duration_ns : durations_ns) {
    node.duration_ns = duration_ns;
    builder.AddNode(node);
    ++node.id;
  }
  for (const Edge& edge : edges) {
    builder.AddDependency(edge.node, edge.source, EdgeKind::kData);
  }
  return std::move(builder).Build();
}

// Returns the longest sum of durations of a path that ends with the node, by trying them all.
int64_t LongestTo(const ExecutionGraph& graph, NodeIndex node) {
  int64_t longest = 0;
  for (const NodeIndex source : graph.dependencies(node)) {
    longest = std::max(longest, LongestTo(graph, source));
  }
  return longest + graph.duration_ns(node);
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
  const ExecutionGraph graph = MakeGraph({1, 1, 1, 1, 1}, {{1, 0}, {2, 1}, {3, 2}, {1, 3}, {4, 3}});
  EXPECT_THAT(FindCycle(graph), ElementsAre(1, 3, 2));
  EXPECT_THAT(TopologicalOrder(graph),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "a cycle: rank 0 node 1 (n) waits for rank 0 node 3 (n), which waits for "
                       "rank 0 node 2 (n), which waits for rank 0 node 1 (n)"));
  EXPECT_THAT(LongestPath(graph), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(TopologicalOrderTest, ANodeMayWaitForItself) {
  const ExecutionGraph graph = MakeGraph({1, 1}, {{1, 1}});
  EXPECT_THAT(FindCycle(graph), ElementsAre(1));
  EXPECT_THAT(TopologicalOrder(graph),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("node 1 (n) waits for rank 0 node 1 (n)")));
}

TEST(TopologicalOrderTest, ALongCycleIsShortened) {
  constexpr NodeIndex kNodes = 100000;
  std::vector<Edge> edges;
  for (NodeIndex node = 0; node < kNodes; ++node) edges.push_back({node, (node + 1) % kNodes});
  const ExecutionGraph graph = MakeGraph(std::vector<int64_t>(kNodes, 1), edges);
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  EXPECT_EQ(cycle.size(), kNodes);
  EXPECT_EQ(DescribeCycle(graph, cycle),
            "rank 0 node 0 (n) waits for rank 0 node 1 (n), which waits for rank 0 node 2 (n), "
            "which waits for rank 0 node 3 (n), which waits for rank 0 node 4 (n), which waits for "
            "99992 more, of which the last waits for rank 0 node 99997 (n), which waits for rank 0 "
            "node 99998 (n), which waits for rank 0 node 99999 (n), which waits for rank 0 node 0 "
            "(n)");
}

TEST(LongestPathTest, IsWorkedOutByHand) {
  //   0 (5) -> 2 (1) -> 3 (4)        5 + 1 + 4 = 10
  //   1 (2) -> 3                     2 + 4 = 6
  const ExecutionGraph graph = MakeGraph({5, 2, 1, 4}, {{2, 0}, {3, 2}, {3, 1}});
  ASSERT_OK_AND_ASSIGN(const GraphPath path, LongestPath(graph));
  EXPECT_EQ(path.length_ns, 10);
  EXPECT_THAT(path.nodes, ElementsAre(0, 2, 3));
}

TEST(LongestPathTest, AgreesWithTryingAllPaths) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const ExecutionGraph graph = RandomExecutionGraph({}, random);
    ASSERT_OK_AND_ASSIGN(const GraphPath path, LongestPath(graph));
    int64_t longest = 0;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      longest = std::max(longest, LongestTo(graph, node));
    }
    EXPECT_EQ(path.length_ns, longest);
    int64_t sum = 0;
    for (size_t i = 0; i < path.nodes.size(); ++i) {
      sum += graph.duration_ns(path.nodes[i]);
      if (i == 0) continue;
      EXPECT_THAT(graph.dependencies(path.nodes[i]), ::testing::Contains(path.nodes[i - 1]));
    }
    EXPECT_EQ(sum, longest);
  }
}

TEST(LongestPathTest, EmptyGraphsAndHugeDurations) {
  ASSERT_OK_AND_ASSIGN(const GraphPath path, LongestPath(MakeGraph({}, {})));
  EXPECT_EQ(path.length_ns, 0);
  EXPECT_THAT(path.nodes, IsEmpty());
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(LongestPath(MakeGraph({kMax, 1}, {{1, 0}})),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("rank 0 node 1 (n)")));
}

}  // namespace
}  // namespace meridian
