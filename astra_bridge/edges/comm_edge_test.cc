#include "astra_bridge/edges/comm_edge.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

CommEdge Edge(CollectiveKind kind, int64_t bytes, std::vector<int32_t> participants) {
  CommEdge edge;
  edge.kind = kind;
  edge.bytes = bytes;
  edge.participants = std::move(participants);
  return edge;
}

TEST(CommEdgeTest, OnlyBytesBetweenRanksUseTheNetwork) {
  EXPECT_TRUE(UsesNetwork(Edge(CollectiveKind::kAllReduce, 1, {0, 1})));
  EXPECT_FALSE(UsesNetwork(Edge(CollectiveKind::kAllReduce, 0, {0, 1})));
  EXPECT_FALSE(UsesNetwork(Edge(CollectiveKind::kAllReduce, 1, {0})));
}

TEST(CommEdgeTest, TheTextHoldsWhatTheTimeDependsOn) {
  CommEdge edge = Edge(CollectiveKind::kAllGather, 4096, {0, 1, 2, 3, 7, 5, 6});
  EXPECT_EQ(CanonicalText(edge), "AG 4096 0-3,7,5-6");
  edge.hint = AlgorithmHint::kDirect;
  EXPECT_EQ(CanonicalText(edge), "AG 4096 direct 0-3,7,5-6");
  edge.id = "e1";
  edge.topology_key = "nvlink";
  EXPECT_EQ(CanonicalText(edge), "AG 4096 direct 0-3,7,5-6");
}

TEST(CommEdgeTest, TheOrderOfParticipantsIsPartOfTheText) {
  EXPECT_EQ(CanonicalText(Edge(CollectiveKind::kPointToPoint, 1, {3, 2})), "P2P 1 3,2");
  EXPECT_EQ(CanonicalText(Edge(CollectiveKind::kPointToPoint, 1, {2, 3})), "P2P 1 2-3");
  const int32_t max = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(CanonicalText(Edge(CollectiveKind::kPointToPoint, 1, {max, 0})), "P2P 1 2147483647,0");
}

}  // namespace
}  // namespace meridian
