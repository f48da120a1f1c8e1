#include "critical_path/graph/periods.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// Adds a stream of a rank whose work is named by the letters; each takes 10, and a blank is an idle
// time of 5.
void AddStream(int64_t rank, const std::string& work, PathGraph* graph) {
  graph->lanes.push_back({rank, TrackKind::kDevice, "", ""});
  int64_t time_ps = 0;
  for (const char letter : work) {
    if (letter == ' ') {
      time_ps += 5;
      continue;
    }
    GraphEvent event;
    event.name = graph->names.Intern(std::string(1, letter));
    event.lane = static_cast<LaneId>(graph->lanes.size() - 1);
    event.start_ps = time_ps;
    event.duration_ps = 10;
    time_ps += 10;
    graph->events.push_back(event);
  }
}

// Returns the steps of all events as text, "-" for none.
std::string Steps(const PathGraph& graph) {
  std::string text;
  for (const GraphEvent& event : graph.events) {
    text += event.step == kNoStep ? "-" : std::to_string(event.step);
  }
  return text;
}

TEST(PeriodsTest, WorkThatRepeatsHasPeriodsThatBeginAfterAPause) {
  PathGraph graph;
  AddStream(0, "bca bca bca bca", &graph);
  ASSERT_TRUE(MarkPeriods(&graph));
  EXPECT_EQ(Steps(graph), "000111222333");
}

TEST(PeriodsTest, APrologueAndAnUnfinishedPeriodBelongToNone) {
  PathGraph graph;
  AddStream(0, "xyz ab ab ab ab a", &graph);
  ASSERT_TRUE(MarkPeriods(&graph));
  EXPECT_EQ(Steps(graph), "---00112233-");
  graph = PathGraph();
  AddStream(0, "ab ab ab ab xyz", &graph);
  ASSERT_TRUE(MarkPeriods(&graph));
  // What comes after the last one that another follows may belong to it or not.
  EXPECT_EQ(Steps(graph), "001122-----");
}

TEST(PeriodsTest, WorkThatDoesNotRepeatIsOnePiece) {
  PathGraph graph;
  AddStream(0, "abcdefab", &graph);
  EXPECT_FALSE(MarkPeriods(&graph));
  EXPECT_EQ(Steps(graph), "--------");
}

// Rank 1 pauses elsewhere, but not as long; in the second meeting it is a period ahead.
TEST(PeriodsTest, RanksAgreeWherePeriodsBeginAndMeetInOne) {
  PathGraph graph;
  AddStream(0, "ab  ab  ab  ab", &graph);
  AddStream(1, "a ba ba ba b", &graph);
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    graph.instants.push_back({graph.events[id].start_ps, id, true});
  }
  const auto meet = [&](GraphEventId a, GraphEventId b) {
    const auto instant = static_cast<InstantId>(graph.instants.size());
    graph.instants.push_back({graph.events[a].start_ps, a, true});
    for (const GraphEventId id : {a, b}) {
      graph.edges.push_back(
          {id, instant, 0, kNoEvent, EdgeType::kSyncDependency, BoundBy::kNothing});
    }
    graph.meetings.push_back({instant, 0, std::nullopt});
  };
  meet(1, 9);
  PathGraph torn = graph;
  ASSERT_TRUE(MarkPeriods(&graph));
  EXPECT_EQ(Steps(graph), "0011223300112233");
  EXPECT_EQ(graph.meetings[0].step, 0);
  torn.edges[1].from = 11;
  EXPECT_FALSE(MarkPeriods(&torn));
}

TEST(PeriodsTest, ACollectiveOfAJobThatShowsNothingElseIsNone) {
  PathGraph graph;
  AddStream(0, "a a a a", &graph);
  graph.instants.resize(2);
  graph.edges.push_back({0, 1, 10, 0, EdgeType::kOperator, BoundBy::kGpuCommunication});
  EXPECT_FALSE(MarkPeriods(&graph));
  graph.edges.push_back({0, 1, 10, 1, EdgeType::kOperator, BoundBy::kGpuCompute});
  EXPECT_TRUE(MarkPeriods(&graph));
}

TEST(PeriodsTest, RanksRepeatEquallyOften) {
  PathGraph graph;
  AddStream(0, "ab ab ab", &graph);
  AddStream(1, "ab ab ab ab", &graph);
  EXPECT_FALSE(MarkPeriods(&graph));
}

TEST(PeriodsTest, OtherStreamsHaveThePeriodInWhichTheirWorkBegan) {
  PathGraph graph;
  AddStream(0, "ab ab ab", &graph);
  AddStream(0, "  k", &graph);
  ASSERT_TRUE(MarkPeriods(&graph));
  EXPECT_EQ(Steps(graph), "0011220");
}

TEST(PeriodsTest, MarkedStepsStay) {
  PathGraph graph;
  AddStream(0, "ab ab ab", &graph);
  graph.events[0].step = 7;
  EXPECT_FALSE(MarkPeriods(&graph));
}

}  // namespace
}  // namespace meridian
