#include "astra_bridge/engine/topology.h"

#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(TopologyTest, CountsTheFirstDimensionFastest) {
  const Topology topology(
      Network({Dimension(BlockShape::kRing, 2), Dimension(BlockShape::kSwitch, 8),
               Dimension(BlockShape::kFullyConnected, 4)}));
  EXPECT_EQ(topology.npus(), 64);
  EXPECT_EQ(topology.stride(2), 16);
  // 47 = 1 + 7 * 2 + 2 * 16.
  EXPECT_EQ(topology.Coordinate(47, 0), 1);
  EXPECT_EQ(topology.Coordinate(47, 1), 7);
  EXPECT_EQ(topology.Coordinate(47, 2), 2);
  EXPECT_EQ(topology.FirstDifference(47, 46), 0);
  EXPECT_EQ(topology.FirstDifference(47, 15), 2);
}

TEST(TopologyTest, CountsLinksByShape) {
  const Topology topology(
      Network({Dimension(BlockShape::kRing, 6), Dimension(BlockShape::kMesh, 6),
               Dimension(BlockShape::kFullyConnected, 6), Dimension(BlockShape::kSwitch, 6)}));
  EXPECT_EQ(topology.Hops(0, 0, 2), 2);
  EXPECT_EQ(topology.Hops(0, 0, 3), 3);
  EXPECT_EQ(topology.Hops(0, 1, 5), 2);
  EXPECT_EQ(topology.Hops(1, 1, 5), 4);
  EXPECT_EQ(topology.Hops(2, 1, 5), 1);
  EXPECT_EQ(topology.Hops(3, 1, 5), 2);
  EXPECT_EQ(topology.Hops(3, 5, 5), 0);
}

TEST(TopologyTest, GoesTheShorterWayAndUpwardsWhenBothAreEqual) {
  const Topology topology(
      Network({Dimension(BlockShape::kRing, 6), Dimension(BlockShape::kMesh, 6)}));
  EXPECT_EQ(topology.Direction(0, 0, 2), 1);
  EXPECT_EQ(topology.Direction(0, 0, 3), 1);
  EXPECT_EQ(topology.Direction(0, 3, 0), 1);
  EXPECT_EQ(topology.Direction(0, 0, 4), -1);
  EXPECT_EQ(topology.Direction(1, 0, 5), 1);
  EXPECT_EQ(topology.Direction(1, 5, 0), -1);
}

}  // namespace
}  // namespace meridian
