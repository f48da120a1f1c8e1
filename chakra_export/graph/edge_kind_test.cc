#include "chakra_export/graph/edge_kind.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(EdgeKindsTest, EveryKindHasItsOwnLetter) {
  EdgeKinds all;
  for (const EdgeKind kind : kEdgeKinds) {
    EXPECT_EQ(EdgeKinds::FromLetters(EdgeKinds(kind).Letters()), kind);
    EXPECT_FALSE(all.Contains(kind));
    all |= kind;
  }
  EXPECT_EQ(all.Letters(), "dcslpw");
  EXPECT_EQ(EdgeKinds::FromLetters("wplscd"), all);
}

TEST(EdgeKindsTest, OtherTextsAreRefused) {
  EXPECT_EQ(EdgeKinds::FromLetters(""), std::nullopt);
  EXPECT_EQ(EdgeKinds::FromLetters("dx"), std::nullopt);
  EXPECT_EQ(ParseEdgeKinds(""), std::nullopt);
  EXPECT_EQ(ParseEdgeKinds("d,"), std::nullopt);
}

TEST(EdgeKindsTest, ListsOfSetsRoundTrip) {
  const std::vector<EdgeKinds> sets = {EdgeKind::kLaunch,
                                       EdgeKinds(EdgeKind::kStream) | EdgeKind::kData};
  EXPECT_EQ(EdgeKindsText(sets), "l,ds");
  EXPECT_EQ(ParseEdgeKinds("l,ds"), sets);
}

}  // namespace
}  // namespace meridian
