#include "astra_bridge/schedule/edge_shapes.h"

#include <vector>

#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EdgeShapesTest, IdsAndGroupsMakeNoDifference) {
  std::vector<CommEdge> edges(2, Edge(CollectiveKind::kAllReduce, 8, {0, 1}));
  edges[1].id = "another";
  edges[1].group_id = "tp";
  const EdgeShapes shapes = FindEdgeShapes(edges);
  EXPECT_THAT(shapes.shape_of, ElementsAre(0, 0));
  EXPECT_THAT(shapes.examples, ElementsAre(0));
}

TEST(EdgeShapesTest, NumbersAscendInCanonicalOrderWithinATopology) {
  std::vector<CommEdge> edges = {
      Edge(CollectiveKind::kAllGather, 8, {0, 1}), Edge(CollectiveKind::kAllReduce, 16, {0, 1}),
      Edge(CollectiveKind::kAllReduce, 8, {1, 0}), Edge(CollectiveKind::kAllReduce, 8, {0, 1}),
      Edge(CollectiveKind::kAllGather, 8, {0, 1}), Edge(CollectiveKind::kAllReduce, 8, {0, 1})};
  edges[5].topology_key = "pod";
  const EdgeShapes shapes = FindEdgeShapes(edges);
  EXPECT_THAT(shapes.shape_of, ElementsAre(3, 2, 1, 0, 3, 4));
  EXPECT_THAT(shapes.examples, ElementsAre(3, 2, 1, 0, 5));
}

TEST(EdgeShapesTest, NoEdgesNoShapes) { EXPECT_THAT(FindEdgeShapes({}).examples, IsEmpty()); }

}  // namespace
}  // namespace meridian
