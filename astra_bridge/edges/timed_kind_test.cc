#include "astra_bridge/edges/comm_edge.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(TimedKindTest, CodesLeadBack) {
  for (int i = 0; i < kTimedKinds; ++i) {
    const CollectiveKind kind = static_cast<CollectiveKind>(i);
    EXPECT_EQ(TimedKindFromCode(TimedKindCode(kind)), kind);
  }
  EXPECT_EQ(CollectiveKindName(CollectiveKind::kReduceScatter), "reduce-scatter");
  EXPECT_EQ(TimedKindCode(CollectiveKind::kPointToPoint), "P2P");
}

TEST(TimedKindTest, SendsReceivesAndPermutesAreMessages) {
  EXPECT_EQ(TimedKindOf(CollectiveKind::kAllGather), CollectiveKind::kAllGather);
  EXPECT_EQ(TimedKindOf(CollectiveKind::kCollectivePermute), CollectiveKind::kPointToPoint);
  EXPECT_EQ(TimedKindOf(CollectiveKind::kSend), CollectiveKind::kPointToPoint);
  EXPECT_EQ(TimedKindOf(CollectiveKind::kRecv), CollectiveKind::kPointToPoint);
  EXPECT_EQ(TimedKindOf(CollectiveKind::kBarrier), std::nullopt);
  EXPECT_EQ(TimedKindOf(CollectiveKind::kRaggedAllToAll), std::nullopt);
}

TEST(TimedKindTest, OtherTextIsNoCode) {
  EXPECT_EQ(TimedKindFromCode("all-reduce"), std::nullopt);
  EXPECT_EQ(TimedKindFromCode(""), std::nullopt);
}

}  // namespace
}  // namespace meridian
