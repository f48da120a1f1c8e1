#include "astra_bridge/comm_kind.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(CommKindTest, NamesAndCodesLeadBack) {
  for (int i = 0; i < kCommKinds; ++i) {
    const CommKind kind = static_cast<CommKind>(i);
    EXPECT_EQ(CommKindFromName(CommKindName(kind)), kind);
    EXPECT_EQ(CommKindFromCode(CommKindCode(kind)), kind);
  }
  EXPECT_EQ(CommKindName(CommKind::kReduceScatter), "reduce-scatter");
  EXPECT_EQ(CommKindCode(CommKind::kPointToPoint), "P2P");
}

TEST(CommKindTest, OtherTextIsNone) {
  EXPECT_EQ(CommKindFromName("AR"), std::nullopt);
  EXPECT_EQ(CommKindFromCode("all-reduce"), std::nullopt);
  EXPECT_EQ(CommKindFromCode(""), std::nullopt);
}

}  // namespace
}  // namespace meridian
