#include "astra_bridge/edges/job_layout.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommEdge Edge(std::vector<int32_t> participants, const char* group_id = "",
              const char* topology_key = "") {
  CommEdge edge;
  edge.id = "e";
  edge.participants = std::move(participants);
  edge.group_id = group_id;
  edge.topology_key = topology_key;
  return edge;
}

JobLayout Layout() {
  JobLayout layout;
  layout.groups = {{"tp", {3, 2}}};
  layout.rank_to_device = {{0, 10}, {1, 11}, {2, 12}, {3, 13}, {4, 10}};
  return layout;
}

TEST(JobLayoutTest, WithoutALayoutNothingChanges) {
  std::vector<CommEdge> edges = {Edge({5, 7}, "unknown")};
  ASSERT_OK(PlaceEdges(JobLayout(), &edges));
  EXPECT_THAT(edges[0].participants, ElementsAre(5, 7));
}

TEST(JobLayoutTest, GroupsStandForTheirMembersAndRanksForDevices) {
  std::vector<CommEdge> edges = {Edge({}, "tp"), Edge({0, 1})};
  ASSERT_OK(PlaceEdges(Layout(), &edges));
  EXPECT_THAT(edges[0].participants, ElementsAre(13, 12));
  EXPECT_THAT(edges[1].participants, ElementsAre(10, 11));
}

TEST(JobLayoutTest, GroupsHaveTopologies) {
  JobLayout layout = Layout();
  layout.group_topologies = {{"tp", "node"}};
  std::vector<CommEdge> edges = {Edge({}, "tp"), Edge({}, "tp", "pod"), Edge({0, 1})};
  ASSERT_OK(PlaceEdges(layout, &edges));
  EXPECT_EQ(edges[0].topology_key, "node");
  EXPECT_THAT(edges[0].participants, ElementsAre(13, 12));
  EXPECT_EQ(edges[1].topology_key, "pod");
  EXPECT_EQ(edges[2].topology_key, "");
}

TEST(JobLayoutTest, ASendWithinAGroupIsNotAmongAllItsMembers) {
  std::vector<CommEdge> edges = {Edge({0, 1}, "tp")};
  edges[0].kind = CollectiveKind::kPointToPoint;
  ASSERT_OK(PlaceEdges(Layout(), &edges));
  EXPECT_THAT(edges[0].participants, ElementsAre(10, 11));
}

TEST(JobLayoutTest, WhatDoesNotFitIsNamed) {
  const struct {
    CommEdge edge;
    const char* reason;
  } kCases[] = {
      {Edge({}, "dp"), "edge e: group_id dp has no members"},
      {Edge({2, 3}, "tp"), "edge e: the participants are not those of group tp"},
      {Edge({0, 9}), "edge e: rank 9 is not in rank_to_device"},
      {Edge({0, 4}), "edge e: two participants are device 10"},
  };
  for (const auto& wrong : kCases) {
    std::vector<CommEdge> edges = {wrong.edge};
    EXPECT_THAT(PlaceEdges(Layout(), &edges),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wrong.reason)));
  }
}

}  // namespace
}  // namespace meridian
