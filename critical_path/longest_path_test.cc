#include "critical_path/longest_path.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "critical_path/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Edges = std::vector<std::tuple<NodeId, NodeId, int64_t>>;

// Node 2k is the start of event k, node 2k + 1 its end.
PathGraph Graph(const Edges& edges) {
  PathGraph graph;
  for (const auto& [from, to, weight_ps] : edges) {
    graph.edges.push_back({from, to, weight_ps, kNoEvent, EdgeType::kOperator, BoundBy::kCpu});
    while (graph.nodes.size() <= std::max(from, to)) {
      const NodeId node = static_cast<NodeId>(graph.nodes.size());
      graph.nodes.push_back({0, node / 2, node % 2 == 0});
      if (node % 2 == 0) {
        GraphEvent event;
        event.name = graph.names.Intern(std::string(1, static_cast<char>('a' + node / 2)));
        event.position = 10 * (node / 2);
        graph.events.push_back(event);
      }
    }
  }
  return graph;
}

std::vector<NodeId> Path(const PathGraph& graph) {
  const absl::StatusOr<CriticalPath> path = FindLongestPath(graph);
  EXPECT_OK(path);
  return PathNodes(graph, *path);
}

TEST(LongestPathTest, FollowsTheHeavierBranch) {
  const PathGraph graph = Graph({{0, 1, 5}, {0, 2, 1}, {2, 3, 3}, {1, 4, 0}, {3, 4, 2}});
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
  EXPECT_EQ(path.length_ps, 6);
  EXPECT_THAT(path.edges, ElementsAre(1, 2, 4));
  EXPECT_THAT(PathNodes(graph, path), ElementsAre(0, 2, 3, 4));
}

TEST(LongestPathTest, SpeedingOneEdgeUpMovesThePath) {
  PathGraph graph = Graph({{0, 1, 5}, {0, 2, 4}, {1, 3, 1}, {2, 3, 1}});
  EXPECT_THAT(Path(graph), ElementsAre(0, 1, 3));
  graph.edges[0].weight_ps = 3;
  EXPECT_THAT(Path(graph), ElementsAre(0, 2, 3));
}

TEST(LongestPathTest, OfEqualPredecessorsTheFirstEdgeCounts) {
  EXPECT_THAT(Path(Graph({{0, 2, 1}, {1, 2, 1}})), ElementsAre(0, 2));
  EXPECT_THAT(Path(Graph({{1, 2, 1}, {0, 2, 1}})), ElementsAre(1, 2));
}

TEST(LongestPathTest, OfEqualEndsTheFirstInTopologicalOrderCounts) {
  // Sources in the order of their edges, 4 and 0; then what they complete: 5 and 1.
  EXPECT_THAT(Path(Graph({{4, 5, 2}, {0, 1, 2}})), ElementsAre(4, 5));
  // 1 is complete one generation before 3.
  EXPECT_THAT(Path(Graph({{0, 2, 1}, {2, 3, 1}, {0, 1, 2}})), ElementsAre(0, 1));
}

TEST(LongestPathTest, EndsWhereItMust) {
  PathGraph graph = Graph({{0, 1, 5}, {0, 2, 1}});
  graph.end_node = 2;
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
  EXPECT_EQ(path.length_ps, 1);
  EXPECT_THAT(PathNodes(graph, path), ElementsAre(0, 2));
}

TEST(LongestPathTest, APathWithoutTimeHasAnEdge) {
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(Graph({{0, 1, 0}, {1, 2, 0}})));
  EXPECT_EQ(path.length_ps, 0);
  EXPECT_THAT(path.edges, ElementsAre(0));
}

TEST(LongestPathTest, ACycleIsNamed) {
  // a start -> a end -> b start -> a end.
  EXPECT_THAT(FindLongestPath(Graph({{0, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 4, 1}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("in a circle"), HasSubstr("'a' (event 0)"))));
}

TEST(LongestPathTest, NothingToFindIsAnError) {
  EXPECT_THAT(FindLongestPath(PathGraph()), StatusIs(absl::StatusCode::kFailedPrecondition));
  PathGraph graph = Graph({{0, 1, 1}, {1, 2, 1}});
  graph.end_node = 0;
  EXPECT_THAT(FindLongestPath(graph), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(LongestPathTest, SumsThatOverflowAreAnError) {
  constexpr int64_t kHalf = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_THAT(FindLongestPath(Graph({{0, 1, kHalf}, {1, 2, kHalf}})),
              StatusIs(absl::StatusCode::kOutOfRange));
}

// The greatest weight of any path that begins at the node, by trying all.
int64_t Longest(const PathGraph& graph, NodeId node) {
  int64_t longest_ps = 0;
  for (const GraphEdge& edge : graph.edges) {
    if (edge.from != node) continue;
    longest_ps = std::max(longest_ps, edge.weight_ps + Longest(graph, edge.to));
  }
  return longest_ps;
}

TEST(LongestPathTest, NoPathIsLonger) {
  std::mt19937 random(20260501);
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    PathGraph graph = RandomGraph(2 + static_cast<int>(random() % 9), random);
    if (graph.edges.empty()) continue;
    // Any order of edges.
    std::shuffle(graph.edges.begin(), graph.edges.end(), random);
    int64_t longest_ps = 0;
    for (NodeId node = 0; node < graph.nodes.size(); ++node) {
      longest_ps = std::max(longest_ps, Longest(graph, node));
    }
    ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
    EXPECT_EQ(path.length_ps, longest_ps);
    int64_t sum_ps = 0;
    for (size_t i = 0; i < path.edges.size(); ++i) {
      sum_ps += graph.edges[path.edges[i]].weight_ps;
      if (i > 0) {
        EXPECT_EQ(graph.edges[path.edges[i]].from, graph.edges[path.edges[i - 1]].to);
      }
    }
    EXPECT_EQ(sum_ps, longest_ps);
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace meridian
