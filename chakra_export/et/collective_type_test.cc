#include "chakra_export/et/collective_type.h"

#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

TEST(CollectiveTypeTest, MessagesAreNoCollectives) {
  EXPECT_EQ(CommTypeOf(CollectiveKind::kReduceScatter), ChakraProtoMsg::REDUCE_SCATTER);
  EXPECT_EQ(CommTypeOf(CollectiveKind::kCollectivePermute), std::nullopt);
  EXPECT_EQ(SimulatedCommTypeOf(CollectiveKind::kSend), std::nullopt);
}

TEST(CollectiveTypeTest, SimulatorsRunTheNearestOfKindsTheyDoNotHave) {
  EXPECT_EQ(CommTypeOf(CollectiveKind::kCollectiveReduce), ChakraProtoMsg::REDUCE);
  EXPECT_EQ(SimulatedCommTypeOf(CollectiveKind::kCollectiveReduce), ChakraProtoMsg::ALL_REDUCE);
  EXPECT_EQ(SimulatedCommTypeOf(CollectiveKind::kBarrier), std::nullopt);
  EXPECT_TRUE(IsApproximated(CollectiveKind::kRaggedAllToAll));
  EXPECT_FALSE(IsApproximated(CollectiveKind::kAllToAll));
}

TEST(CollectiveTypeTest, KnowsWhichTypesAreSimulated) {
  for (const auto type :
       {ChakraProtoMsg::ALL_REDUCE, ChakraProtoMsg::ALL_GATHER, ChakraProtoMsg::BROADCAST,
        ChakraProtoMsg::ALL_TO_ALL, ChakraProtoMsg::REDUCE_SCATTER}) {
    EXPECT_TRUE(IsSimulated(type));
  }
  for (const auto type : {ChakraProtoMsg::REDUCE, ChakraProtoMsg::GATHER, ChakraProtoMsg::SCATTER,
                          ChakraProtoMsg::REDUCE_SCATTER_BLOCK, ChakraProtoMsg::BARRIER}) {
    EXPECT_FALSE(IsSimulated(type));
  }
  EXPECT_FALSE(IsSimulated(99));
}

TEST(CollectiveTypeTest, TypesLeadBackToKinds) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kCollectiveBroadcast,
        CollectiveKind::kCollectiveReduce, CollectiveKind::kCollectiveGather,
        CollectiveKind::kCollectiveScatter, CollectiveKind::kBarrier}) {
    EXPECT_EQ(CollectiveKindOf(*CommTypeOf(kind)), kind);
  }
  EXPECT_EQ(CollectiveKindOf(ChakraProtoMsg::REDUCE_SCATTER_BLOCK), CollectiveKind::kReduceScatter);
  EXPECT_EQ(CollectiveKindOf(99), std::nullopt);
}

}  // namespace
}  // namespace meridian
