#include "critical_path/graph/path_graph_file.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/blame.h"
#include "critical_path/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr size_t kHeaderBytes = 16;
constexpr int64_t kLongestPs = (int64_t{1} << 60) - 1;

GraphSource Source() {
  GraphSource source;
  source.trace = "traces/rank \xFF.json";
  source.window = {"step", {1, 4}};
  source.hta_compatible = true;
  source.notes = {"one", "two"};
  return source;
}

// All that a graph holds, as text.
std::string Describe(const PathGraph& graph) {
  std::string text =
      absl::StrCat(graph.base_ns, " ", graph.window_start_ps, " ", graph.window_end_ps, " ",
                   graph.end_instant.value_or(kNoInstant), "\n");
  for (const Lane& lane : graph.lanes) {
    absl::StrAppend(&text, lane.rank, " ", static_cast<int>(lane.kind), " ", lane.process, " ",
                    lane.thread, "\n");
  }
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const GraphEvent& event = graph.events[id];
    absl::StrAppend(&text, graph.EventName(id), " ", event.lane, " ", event.start_ps, " ",
                    event.duration_ps, " ", EventCategoryName(event.category), " ", event.position,
                    "\n");
  }
  for (const Instant& instant : graph.instants) {
    absl::StrAppend(&text, instant.time_ps, " ", instant.event, " ", instant.is_start, "\n");
  }
  for (const GraphEdge& edge : graph.edges) {
    absl::StrAppend(&text, edge.from, " ", edge.to, " ", edge.weight_ps, " ", edge.event, " ",
                    EdgeTypeName(edge.type), " ", BoundByName(edge.bound_by), "\n");
  }
  for (const GraphMeeting& meeting : graph.meetings) {
    absl::StrAppend(&text, meeting.instant, " ", std::string(graph.names.Get(meeting.name)), " ",
                    meeting.step.has_value() ? absl::StrCat(*meeting.step) : "-", "\n");
  }
  for (const StepMark& mark : graph.marks) {
    absl::StrAppend(&text, mark.rank, " ", mark.step, " ", mark.start_ps, "\n");
  }
  return text;
}

PathGraph SomeGraph(int instants, std::mt19937& random) {
  PathGraph graph = RandomGraph(instants, random);
  graph.base_ns = 1790857026000000000;
  graph.window_start_ps = -5;
  graph.window_end_ps = kLongestPs;
  graph.events[0].duration_ps = -1000000;
  graph.instants[0].event = kNoEvent;
  graph.instants[1].time_ps = -kLongestPs;
  if (instants % 2 == 0) graph.end_instant = static_cast<InstantId>(instants - 1);
  const auto last = static_cast<InstantId>(instants - 1);
  graph.meetings = {{last, 0, std::nullopt}, {last / 2, graph.names.Intern("all-reduce"), -7}};
  graph.marks = {{3, -7, kLongestPs}, {0, 5, -1}};
  return graph;
}

TEST(PathGraphFileTest, GivesBackWhatWasSaved) {
  std::mt19937 random(3);
  for (int instants = 2; instants < 40; ++instants) {
    const PathGraph graph = SomeGraph(instants, random);
    const std::string bytes = SerializeGraph(Source(), graph);
    ASSERT_OK_AND_ASSIGN(const TraceAnalysis saved, ParseGraph(bytes));
    EXPECT_EQ(Describe(saved.graph), Describe(graph));
    EXPECT_EQ(saved.source.trace, Source().trace);
    EXPECT_EQ(saved.source.window.annotation, "step");
    EXPECT_EQ(saved.source.window.instances.first, 1);
    EXPECT_EQ(saved.source.window.instances.last, 4);
    EXPECT_TRUE(saved.source.hta_compatible);
    EXPECT_EQ(saved.source.notes, Source().notes);
  }
}

TEST(PathGraphFileTest, EqualGraphsAreEqualFiles) {
  std::mt19937 random(4), again(4);
  EXPECT_EQ(SerializeGraph(Source(), SomeGraph(20, random)),
            SerializeGraph(Source(), SomeGraph(20, again)));
}

std::string SomeFile() {
  std::mt19937 random(5);
  return SerializeGraph(Source(), SomeGraph(12, random));
}

TEST(PathGraphFileTest, RefusesOtherFiles) {
  EXPECT_THAT(ParseGraph(""), StatusIs(kInvalid, HasSubstr("no saved graph")));
  EXPECT_THAT(ParseGraph("{\"traceEvents\": []}"), StatusIs(kInvalid, HasSubstr("MCPGRAPH")));
  EXPECT_THAT(ParseGraph("MCPGRAPH"), StatusIs(kInvalid, HasSubstr("cut off")));
  std::string later = SomeFile();
  later[8] = 99;
  EXPECT_THAT(ParseGraph(later),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("version 99")));
}

TEST(PathGraphFileTest, FindsEveryDamagedByte) {
  const std::string file = SomeFile();
  for (size_t at = 0; at < file.size(); ++at) {
    std::string damaged = file;
    damaged[at] ^= 0x10;
    EXPECT_FALSE(ParseGraph(damaged).ok()) << at;
    EXPECT_FALSE(ParseGraph(file.substr(0, at)).ok()) << at;
  }
  EXPECT_THAT(ParseGraph(file + "x"), StatusIs(kInvalid, HasSubstr("offset 12")));
}

// What is written is not checked, so that files can be made that no trace leads to.
TEST(PathGraphFileTest, RefusesNumbersThatDoNotAddUp) {
  const auto parse = [](const std::function<void(PathGraph*)>& change) {
    std::mt19937 random(8);
    PathGraph graph = SomeGraph(12, random);
    change(&graph);
    return ParseGraph(SerializeGraph(Source(), graph)).status();
  };
  EXPECT_OK(parse([](PathGraph* graph) { graph->lanes[0].rank = -1; }));
  EXPECT_OK(parse([](PathGraph* graph) { graph->lanes[0].rank = int64_t{1} << 31; }));
  for (const int64_t rank : {INT64_MIN, int64_t{-2}, (int64_t{1} << 31) + 1, INT64_MAX}) {
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->lanes[1].rank = rank; }),
                StatusIs(kInvalid, HasSubstr(absl::StrCat("a lane's rank is ", rank))));
  }
  for (const int64_t time_ps : {INT64_MIN, -kLongestPs - 1, kLongestPs + 1, INT64_MAX}) {
    const auto refused = StatusIs(kInvalid, HasSubstr("a time is not below 2^60 ps"));
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->window_start_ps = time_ps; }), refused);
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->window_end_ps = time_ps; }), refused);
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->events[1].start_ps = time_ps; }), refused);
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->events[1].duration_ps = time_ps; }), refused);
    EXPECT_THAT(parse([&](PathGraph* graph) { graph->instants[2].time_ps = time_ps; }), refused);
    EXPECT_FALSE(parse([&](PathGraph* graph) { graph->edges[0].weight_ps = time_ps; }).ok());
  }
}

TEST(PathGraphFileTest, AnyBodyIsSafeToRead) {
  // With a right checksum, so that the body itself is what has to be checked.
  const std::string file = SomeFile();
  std::mt19937 random(6);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = file.substr(kHeaderBytes);
    for (int i = 0; i <= static_cast<int>(random() % 3); ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const absl::StatusOr<TraceAnalysis> saved = ParseGraph(GraphFile(damaged));
    ++(saved.ok() ? accepted : refused);
    if (!saved.ok()) continue;
    // All numbers are in range, or this would crash.
    (void)Describe(saved->graph);
    const absl::StatusOr<CriticalPath> path = FindLongestPath(saved->graph);
    if (path.ok()) (void)FindBlame(saved->graph);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace meridian
