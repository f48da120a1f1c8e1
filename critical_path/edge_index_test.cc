#include "critical_path/edge_index.h"

#include "critical_path/path_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EdgeIndexTest, KeepsTheOrderOfTheEdges) {
  PathGraph graph;
  graph.nodes.resize(4);
  for (const auto& [from, to] : {std::pair<NodeId, NodeId>{0, 2}, {1, 2}, {0, 1}}) {
    GraphEdge edge;
    edge.from = from;
    edge.to = to;
    graph.edges.push_back(edge);
  }
  const EdgeIndex outgoing(graph, &GraphEdge::from);
  EXPECT_THAT(outgoing.Of(0), ElementsAre(0, 2));
  EXPECT_THAT(outgoing.Of(1), ElementsAre(1));
  EXPECT_THAT(outgoing.Of(2), IsEmpty());
  const EdgeIndex incoming(graph, &GraphEdge::to);
  EXPECT_THAT(incoming.Of(0), IsEmpty());
  EXPECT_THAT(incoming.Of(1), ElementsAre(2));
  EXPECT_THAT(incoming.Of(2), ElementsAre(0, 1));
  EXPECT_THAT(incoming.Of(3), IsEmpty());
}

}  // namespace
}  // namespace meridian
