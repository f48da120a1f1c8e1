#include "chakra_export/graph/dependency_kind.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(DependencyKindsTest, EveryKindHasItsOwnLetter) {
  DependencyKinds all;
  for (const DependencyKind kind : kDependencyKinds) {
    EXPECT_EQ(DependencyKinds::FromLetters(DependencyKinds(kind).Letters()), kind);
    EXPECT_FALSE(all.Contains(kind));
    all |= kind;
  }
  EXPECT_EQ(all.Letters(), "dcslpw");
  EXPECT_EQ(DependencyKinds::FromLetters("wplscd"), all);
}

TEST(DependencyKindsTest, OtherTextsAreRefused) {
  EXPECT_EQ(DependencyKinds::FromLetters(""), std::nullopt);
  EXPECT_EQ(DependencyKinds::FromLetters("dx"), std::nullopt);
  EXPECT_EQ(ParseDependencyKinds(""), std::nullopt);
  EXPECT_EQ(ParseDependencyKinds("d,"), std::nullopt);
}

TEST(DependencyKindsTest, ListsOfSetsRoundTrip) {
  const std::vector<DependencyKinds> sets = {
      DependencyKind::kLaunch, DependencyKinds(DependencyKind::kStream) | DependencyKind::kData};
  EXPECT_EQ(DependencyKindsText(sets), "l,ds");
  EXPECT_EQ(ParseDependencyKinds("l,ds"), sets);
}

}  // namespace
}  // namespace meridian
