#include "critical_path/what_if/structure_edits.h"

#include <string>
#include <vector>

#include "critical_path/graph/path_graph.h"
#include "critical_path/what_if/testing/all_reduce_job.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Rank 1 is the last to come.
MeasuredGraph ThreeRanks() {
  return MeasureGraph(AllReduceJob({{5, 10, 3}, {9, 30, 5}, {7, 14, 3}}));
}

TEST(DropRemovedTest, WhatWasRemovedIsGone) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result, WhatIf(ThreeRanks(), "remove rank=1"));
  const WhatIfGraph& edited = result.edited;
  const PathGraph& graph = edited.graph;
  // Two ranks with an op and an all-reduce each, the window's bounds and the meeting.
  EXPECT_THAT(graph.events, SizeIs(4));
  EXPECT_THAT(graph.instants, SizeIs(4 * 2 + 2 + 1));
  EXPECT_THAT(edited.start_instants, SizeIs(4));
  ASSERT_THAT(graph.meetings, SizeIs(1));
  // The meeting has the name of one who comes.
  const Instant& meeting = graph.instants[graph.meetings[0].instant];
  EXPECT_EQ(graph.EventName(meeting.event), "all-reduce");
  EXPECT_NE(graph.lanes[graph.events[meeting.event].lane].rank, 1);
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    EXPECT_EQ(graph.instants[edited.start_instants[id]].event, id);
    EXPECT_TRUE(graph.instants[edited.start_instants[id]].is_start);
    EXPECT_EQ(graph.instants[edited.end_instants[id]].event, id);
    EXPECT_NE(graph.lanes[graph.events[id].lane].rank, 1);
  }
  EXPECT_EQ(graph.instants[*graph.end_instant].time_ps, (24 + kTransferUs) * 1'000'000);
}

TEST(DropRemovedTest, AMeetingToWhichNobodyComesIsGoneToo) {
  ASSERT_OK_AND_ASSIGN(const WhatIfResult result,
                       WhatIf(ThreeRanks(), "remove name=\"all-reduce\""));
  EXPECT_THAT(result.edited.graph.meetings, IsEmpty());
  EXPECT_THAT(result.edited.graph.instants, SizeIs(3 * 2 + 2));
  // Nothing is left but the ops, of which the last ends at 39.
  EXPECT_EQ(result.path.length_ps, 39'000'000);
}

TEST(DropRemovedTest, WithoutARemovalNothingChanges) {
  const MeasuredGraph measured = ThreeRanks();
  WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  DropRemoved(&edited);
  EXPECT_EQ(edited.graph.events.size(), measured.graph.events.size());
  EXPECT_EQ(edited.graph.instants.size(), measured.graph.instants.size());
  EXPECT_EQ(edited.graph.end_instant, measured.graph.end_instant);
  EXPECT_EQ(edited.graph.meetings[0].instant, measured.graph.meetings[0].instant);
}

}  // namespace
}  // namespace meridian
