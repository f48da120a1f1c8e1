#include "astra_bridge/timing/message_delay.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

NetworkDimension Dimension(BlockShape shape, int32_t npus, double bytes_per_ns, double latency_ns) {
  NetworkDimension dimension;
  dimension.shape = shape;
  dimension.npus = npus;
  dimension.bytes_per_ns = bytes_per_ns;
  dimension.latency_ns = latency_ns;
  return dimension;
}

TEST(MessageDelayTest, HopsFollowTheShape) {
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kRing, 8, 1, 1), 1, 7), 2);
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kRing, 8, 1, 1), 7, 3), 4);
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kMesh, 8, 1, 1), 1, 7), 6);
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kFullyConnected, 8, 1, 1), 1, 7), 1);
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kSwitch, 8, 1, 1), 1, 7), 2);
  EXPECT_EQ(HopsBetween(Dimension(BlockShape::kSwitch, 8, 1, 1), 7, 7), 0);
}

TEST(MessageDelayTest, LatencyPerLinkBytesOnce) {
  NetworkConfig network;
  network.dimensions = {Dimension(BlockShape::kRing, 8, 4, 500)};
  EXPECT_EQ(MessageDelayNs(network, 0, 3, 1000), 3 * 500 + 250);
  EXPECT_EQ(MessageDelayNs(network, 3, 3, 1000), 0);
}

TEST(MessageDelayTest, OnlyTheLowestDimensionThatDiffersCounts) {
  NetworkConfig network;
  network.dimensions = {Dimension(BlockShape::kFullyConnected, 4, 4, 500),
                        Dimension(BlockShape::kSwitch, 2, 1, 3000)};
  EXPECT_EQ(MessageDelayNs(network, 1, 5, 1000), 2 * 3000 + 1000);
  EXPECT_EQ(MessageDelayNs(network, 1, 6, 1000), 500 + 250);
}

}  // namespace
}  // namespace meridian
