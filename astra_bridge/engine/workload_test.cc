#include "astra_bridge/engine/workload.h"

#include "absl/status/status.h"
#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(RankWorkloadTest, KeepsNodesAndTheirDependencies) {
  RankWorkload rank;
  WorkloadNode node;
  node.id = 1;
  rank.Add(node);
  node.id = 2;
  rank.Add(node, {1, 3});
  node.id = 3;
  rank.Add(node, {1});
  EXPECT_THAT(rank.nodes(), SizeIs(3));
  EXPECT_EQ(rank.nodes()[1].id, 2u);
  EXPECT_THAT(rank.dependencies(0), IsEmpty());
  EXPECT_THAT(rank.dependencies(1), ElementsAre(1, 3));
  EXPECT_THAT(rank.dependencies(2), ElementsAre(1));
}

Workload WithGroups(const WorkloadGroups& groups) {
  Workload workload = EveryRank(4, ComputeNode(1, 0));
  workload.groups = groups;
  workload.groups_source = "g.json";
  return workload;
}

TEST(GroupTableTest, FindsMembersInTheOrderOfTheRing) {
  ASSERT_OK_AND_ASSIGN(const GroupTable table,
                       GroupTable::Create(WithGroups({{1, {0, 2}}, {7, {3, 0, 1}}})));
  ASSERT_OK_AND_ASSIGN(const Membership membership, table.Find(0, 7));
  EXPECT_EQ(membership.member, 1);
  EXPECT_EQ(table.size(membership.group), 3);
  EXPECT_EQ(table.rank(membership.group, 0), 3);
  EXPECT_EQ(table.groups()[membership.group].id, 7);
  ASSERT_OK_AND_ASSIGN(const Membership world, table.Find(3, kWorldGroup));
  EXPECT_EQ(world.member, 3);
  EXPECT_EQ(table.size(world.group), 4);
}

TEST(GroupTableTest, AGroupOfAllRanksIsLikeTheWorld) {
  ASSERT_OK_AND_ASSIGN(const GroupTable table, GroupTable::Create(WithGroups({{1, {3, 2, 1, 0}}})));
  ASSERT_OK_AND_ASSIGN(const Membership membership, table.Find(3, 1));
  EXPECT_EQ(membership.member, 3);
  EXPECT_EQ(membership.group, 1u);
  EXPECT_TRUE(table.groups()[1].members.empty());
}

TEST(GroupTableTest, RefusesGroupsThatCannotBe) {
  const auto error = [](const WorkloadGroups& groups) {
    return GroupTable::Create(WithGroups(groups)).status();
  };
  EXPECT_THAT(error({{0, {0, 1}}}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             StartsWith("g.json: group 0: ids start at 1")));
  EXPECT_THAT(error({{1, {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no members")));
  EXPECT_THAT(error({{1, {0, 4}}}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             StartsWith("g.json: group 1: rank 4 does not exist")));
  EXPECT_THAT(error({{1, {0, -1}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank -1 does not exist")));
  EXPECT_THAT(error({{1, {2, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2 is there twice")));
}

TEST(GroupTableTest, LooksUpOnlyMembers) {
  ASSERT_OK_AND_ASSIGN(const GroupTable table, GroupTable::Create(WithGroups({{1, {0, 2}}})));
  EXPECT_THAT(table.Find(1, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 1 is no member")));
  EXPECT_THAT(table.Find(0, 9),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("group 9 is not among")));
}

}  // namespace
}  // namespace meridian
