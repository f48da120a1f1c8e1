#include "critical_path/graph/path_graph.h"

#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PathGraphTest, NamesAreThoseOfReports) {
  EXPECT_EQ(EdgeTypeName(EdgeType::kKernelLaunchDelay), "kernel_launch_delay");
  EXPECT_EQ(BoundByName(BoundBy::kOtherRanks), "wait_for_other_ranks");
  EXPECT_EQ(BoundByName(BoundBy::kNothing), "");
}

TEST(PathGraphTest, NamesAreDistinct) {
  std::set<std::string> names;
  for (int i = 0; i < kNumEdgeTypes; ++i) {
    names.insert(std::string(EdgeTypeName(static_cast<EdgeType>(i))));
  }
  for (int i = 0; i < kNumBoundBy; ++i) {
    names.insert(std::string(BoundByName(static_cast<BoundBy>(i))));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumEdgeTypes + kNumBoundBy));
}

TEST(PathGraphTest, CountsInstantsThatHaveEdges) {
  PathGraph graph;
  graph.instants.resize(5);
  EXPECT_EQ(CountJoinedInstants(graph), 0);
  graph.edges = {{0, 3, 1, kNoEvent, EdgeType::kOperator, BoundBy::kCpu},
                 {3, 4, 1, kNoEvent, EdgeType::kOperator, BoundBy::kCpu}};
  EXPECT_EQ(CountJoinedInstants(graph), 3);
}

TEST(EdgesByInstantTest, KeepsTheOrderOfTheEdges) {
  PathGraph graph;
  graph.instants.resize(4);
  for (const auto& [from, to] : {std::pair<InstantId, InstantId>{0, 2}, {1, 2}, {0, 1}}) {
    GraphEdge edge;
    edge.from = from;
    edge.to = to;
    graph.edges.push_back(edge);
  }
  const EdgesByInstant outgoing(graph, &GraphEdge::from);
  EXPECT_THAT(outgoing.Of(0), ElementsAre(0, 2));
  EXPECT_THAT(outgoing.Of(1), ElementsAre(1));
  EXPECT_THAT(outgoing.Of(2), IsEmpty());
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  EXPECT_THAT(incoming.Of(0), IsEmpty());
  EXPECT_THAT(incoming.Of(1), ElementsAre(2));
  EXPECT_THAT(incoming.Of(2), ElementsAre(0, 1));
  EXPECT_THAT(incoming.Of(3), IsEmpty());
}

}  // namespace
}  // namespace meridian
