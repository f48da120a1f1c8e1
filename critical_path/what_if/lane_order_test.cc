#include "critical_path/what_if/structure_edits.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Three pieces of work of one stream; instants 1 .. 6 and the window's, 0 and 7.
WhatIfGraph Stream() {
  WhatIfGraph edited;
  PathGraph& graph = edited.graph;
  graph.lanes.push_back({0, TrackKind::kDevice, "0", "7"});
  graph.instants.push_back({0, kNoEvent, true});
  for (GraphEventId event = 0; event < 3; ++event) {
    graph.events.push_back({graph.names.Intern(absl::StrCat("k", event)), 0, 0, 0});
    graph.instants.push_back({0, event, true});
    graph.instants.push_back({0, event, false});
    edited.start_instants.push_back(1 + 2 * event);
    edited.end_instants.push_back(2 + 2 * event);
    graph.edges.push_back(
        {1 + 2 * event, 2 + 2 * event, 10, event, EdgeType::kOperator, BoundBy::kGpuCompute});
  }
  graph.instants.push_back({0, kNoEvent, false});
  graph.end_instant = 7;
  graph.edges.push_back({2, 3, 4, 1, EdgeType::kKernelKernelDelay, BoundBy::kKernelKernelOverhead});
  graph.edges.push_back({4, 5, 6, 2, EdgeType::kKernelKernelDelay, BoundBy::kKernelKernelOverhead});
  edited.lane_order = {{1, 2, 3, 4, 5, 6}};
  return edited;
}

// "from->to weight" of the edges between events.
std::vector<std::string> LaneEdges(const WhatIfGraph& edited) {
  std::vector<std::string> edges;
  for (const GraphEdge& edge : edited.graph.edges) {
    if (!IsLaneEdge(edited, edge)) continue;
    edges.push_back(absl::StrCat(edge.from, "->", edge.to, " ", edge.weight_ps));
  }
  return edges;
}

TEST(LaneOrderTest, TheTimeBeforeAnInstantStaysWithIt) {
  WhatIfGraph edited = Stream();
  ReorderLane(0, {1, 2, 5, 6, 3, 4}, &edited);
  EXPECT_THAT(LaneEdges(edited), UnorderedElementsAre("2->5 6", "6->3 4"));
  EXPECT_THAT(edited.lane_order[0], ElementsAre(1, 2, 5, 6, 3, 4));
}

TEST(LaneOrderTest, TheFirstGivesItsPlaceAndTakesTheTime) {
  WhatIfGraph edited = Stream();
  ReorderLane(0, {5, 6, 1, 2, 3, 4}, &edited);
  EXPECT_THAT(LaneEdges(edited), UnorderedElementsAre("6->1 6", "2->3 4"));
}

TEST(LaneOrderTest, WhatLeavesIsSkipped) {
  WhatIfGraph edited = Stream();
  ReorderLane(0, {1, 2, 5, 6}, &edited);
  // Instant 3 still waits for 2; nothing waits for 4.
  EXPECT_THAT(LaneEdges(edited), UnorderedElementsAre("2->3 4", "2->5 6"));
}

TEST(LaneOrderTest, TidyKeepsTheLongestEdgeAndLeadsToTheEnd) {
  WhatIfGraph edited = Stream();
  edited.graph.edges.push_back(
      {2, 3, 9, 1, EdgeType::kSyncDependency, BoundBy::kKernelKernelOverhead});
  edited.graph.edges.push_back(
      {4, 5, 1, 1, EdgeType::kSyncDependency, BoundBy::kKernelKernelOverhead});
  TidyEdges(&edited);
  EXPECT_THAT(LaneEdges(edited), UnorderedElementsAre("2->3 9", "4->5 6"));
  EXPECT_EQ(edited.graph.edges.back().from, 6u);
  EXPECT_EQ(edited.graph.edges.back().to, 7u);
  const size_t edges = edited.graph.edges.size();
  TidyEdges(&edited);
  EXPECT_EQ(edited.graph.edges.size(), edges);
}

}  // namespace
}  // namespace meridian
