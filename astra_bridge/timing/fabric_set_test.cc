#include "astra_bridge/timing/fabric_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

Fabric Numbered(uint64_t number) {
  Fabric fabric;
  fabric.content_hash = number;
  return fabric;
}

TEST(FabricSetTest, FindsByKey) {
  const FabricSet set({{"default", Numbered(1)}, {"pod", Numbered(2)}});
  ASSERT_OK_AND_ASSIGN(const Fabric* pod, set.Find("pod"));
  EXPECT_EQ(pod->content_hash, 2u);
  ASSERT_OK_AND_ASSIGN(const Fabric* unnamed, set.Find(""));
  EXPECT_EQ(unnamed->content_hash, 1u);
  EXPECT_THAT(set.Find("nvlink"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "topology_key nvlink names no topology; there are default, pod"));
}

TEST(FabricSetTest, TheOnlyOneNeedsNoKey) {
  const FabricSet set({{"pod", Numbered(2)}});
  EXPECT_OK(set.Find(""));
  EXPECT_THAT(set.Find("nvlink"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FabricSetTest, SeveralNeedADefaultForEdgesWithoutKey) {
  const FabricSet set({{"a", Numbered(1)}, {"b", Numbered(2)}});
  EXPECT_THAT(set.Find(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("no topology is called default")));
}

TEST(FabricSetTest, OneForAllTakesAnyKey) {
  const FabricSet set = FabricSet::ForAllEdges(Numbered(7));
  ASSERT_OK_AND_ASSIGN(const Fabric* fabric, set.Find("nvlink"));
  EXPECT_EQ(fabric->content_hash, 7u);
  EXPECT_OK(set.Find(""));
}

}  // namespace
}  // namespace meridian
