#include "xla_profiler/hlo/hlo_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HloTextTest, GroupsAreListsOrIota) {
  EXPECT_THAT(ParseReplicaGroups("{{0;1};{2;3}}"), IsOkAndHolds(IdGroups({{0, 1}, {2, 3}})));
  EXPECT_THAT(ParseReplicaGroups("{{0,4},{1,5}}"), IsOkAndHolds(IdGroups({{0, 4}, {1, 5}})));
  EXPECT_THAT(ParseReplicaGroups("{}"), IsOkAndHolds(IdGroups()));
  EXPECT_THAT(ParseReplicaGroups("[2;2]<=[4]"), IsOkAndHolds(IdGroups({{0, 1}, {2, 3}})));
  // 0 1 2 3 / 4 5 6 7, transposed and cut in twos.
  EXPECT_THAT(ParseReplicaGroups("[4,2]<=[2,4]T(1,0)"),
              IsOkAndHolds(IdGroups({{0, 4}, {1, 5}, {2, 6}, {3, 7}})));
}

TEST(HloTextTest, OtherGroupsAreRefused) {
  for (const char* text :
       {"", "0,1", "{{0;1}", "{{a}}", "{{-1}}", "[2,2]<=[5]", "[2,2]<=[0]", "[3,1]<=[4]",
        "[2,2]<=[2,2]T(0,0)", "[2,2]<=[2,2]T(1,0)x", "[1,99999999999]<=[99999999999]", "{{0},x}",
        "{{0,0}}", "{{0}{1}}", "{{},{1}}", "{{0},}"}) {
    EXPECT_THAT(ParseReplicaGroups(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(HloTextTest, ShapesGiveBytes) {
  EXPECT_THAT(ParseShapeBytes("f32[1024]"), IsOkAndHolds(4096));
  EXPECT_THAT(ParseShapeBytes("bf16[2;3]{1;0}"), IsOkAndHolds(12));
  EXPECT_THAT(ParseShapeBytes("(f32[4]{0}; s8[3])"), IsOkAndHolds(19));
  EXPECT_THAT(ParseShapeBytes("f32[]"), IsOkAndHolds(4));
  for (const char* text : {"", "f32", "g7[1]", "f32[x]", "(f32[1]", "f32[1])", "f32[1]f32[1]"}) {
    EXPECT_THAT(ParseShapeBytes(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(HloTextTest, PairsInAttributesAreText) {
  ASSERT_OK_AND_ASSIGN(const auto pairs, ParseSourceTargetPairs("{{0,1},{1,2}}"));
  EXPECT_THAT(pairs, ElementsAre(SourceTargetPair{0, 1}, SourceTargetPair{1, 2}));
  ASSERT_OK_AND_ASSIGN(const auto none, ParseSourceTargetPairs("{}"));
  EXPECT_THAT(none, IsEmpty());
  for (const char* text : {"", "{", "{{0}}", "{{0,1}", "{{0,1}}x", "{{0,a}}", "0,1", "{{0,1,2}}"}) {
    EXPECT_THAT(ParseSourceTargetPairs(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

}  // namespace
}  // namespace meridian
