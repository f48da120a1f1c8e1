#include "critical_path/trace/stepped_trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/path_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A trace as it stays and the graph of all of it.
struct Kept {
  std::optional<SteppedTrace> trace;
  PathGraph whole;
};

absl::StatusOr<Kept> Keep(const KinetoTrace& trace) {
  const TemporaryDirectory directory;
  const std::string text = trace.Text();
  ASSIGN_OR_RETURN(const TraceJsonTable loaded, LoadTraceJson(text, "test"));
  const DeviceDependencies dependencies = FindTraceJsonDependencies(text, loaded.table);
  ASSIGN_OR_RETURN(const TraceWindow window, ChooseTraceWindow(loaded.table, dependencies, {}));
  RankEvents events;
  events.table = &loaded.table;
  events.positions = loaded.positions;
  events.dependencies = &dependencies;
  Kept kept;
  ASSIGN_OR_RETURN(kept.whole, BuildTraceGraph(events, window, {}));
  ASSIGN_OR_RETURN(kept.trace,
                   SteppedTrace::Create(events, window, {}, FileSystem::Posix(), directory.path()));
  return kept;
}

// A step takes 100 us. The call in it launches work that runs from 30 us after its own step's start
// on; that of the first, for 250 us on a stream of its own.
KinetoTrace ThreeSteps() {
  KinetoTrace trace;
  trace.Op("before", 0, 10);
  for (int64_t step = 0; step < 3; ++step) {
    const double at = 100.0 * static_cast<double>(step + 1);
    trace.Annotation(absl::StrCat("ProfilerStep#", 7 + step), at, 95);
    trace.Op("op", at + 5, 40);
    trace.Call("cudaLaunchKernel", at + 10, 5, step + 1);
    const bool is_first = step == 0;
    trace.Kernel(absl::StrCat("kernel ", step), at + 30, is_first ? 250 : 50, is_first ? 9 : 7,
                 step + 1);
    trace.Op("between", at + 96, 2);
  }
  return trace;
}

// "name start us step" of the events of a graph.
std::vector<std::string> EventsOf(const PathGraph& graph) {
  std::vector<std::string> events;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const GraphEvent& event = graph.events[id];
    events.push_back(absl::StrCat(graph.EventName(id), " ", event.start_ps / kPsPerUs, " ",
                                  event.step == kNoStep ? "-" : absl::StrCat(event.step)));
  }
  return events;
}

TEST(SteppedTraceTest, AllStretchesAreTheWholeTrace) {
  ASSERT_OK_AND_ASSIGN(const Kept kept, Keep(ThreeSteps()));
  EXPECT_THAT(kept.trace->steps(), ElementsAre(7, 8, 9));
  // With the step itself; what comes before it is with the first.
  EXPECT_EQ(kept.trace->RowsIn(0), 6);
  EXPECT_EQ(kept.trace->RowsIn(1), 5);
  ASSERT_OK_AND_ASSIGN(const PathGraph graph, kept.trace->BuildGraph(0, 2, {}));
  EXPECT_EQ(EventsOf(graph), EventsOf(kept.whole));
  EXPECT_EQ(graph.window_start_ps, kept.whole.window_start_ps);
  EXPECT_EQ(graph.window_end_ps, kept.whole.window_end_ps);
  const auto edges_of = [](const PathGraph& of) {
    std::vector<std::tuple<InstantId, InstantId, int64_t, GraphEventId, EdgeType, BoundBy>> edges;
    for (const GraphEdge& edge : of.edges) {
      edges.emplace_back(edge.from, edge.to, edge.weight_ps, edge.event, edge.type, edge.bound_by);
    }
    return edges;
  };
  EXPECT_EQ(edges_of(graph), edges_of(kept.whole));
}

TEST(SteppedTraceTest, AStretchHasWhatWasLaunchedInItAndWhatStillRuns) {
  ASSERT_OK_AND_ASSIGN(const Kept kept, Keep(ThreeSteps()));
  ASSERT_OK_AND_ASSIGN(const PathGraph graph, kept.trace->BuildGraph(1, 1, {}));
  EXPECT_THAT(EventsOf(graph), ElementsAre("kernel 0 200 -", "op 205 8", "cudaLaunchKernel 210 8",
                                           "kernel 1 230 8", "between 296 -"));
  EXPECT_EQ(graph.window_start_ps, 200 * kPsPerUs);
  EXPECT_EQ(graph.window_end_ps, 300 * kPsPerUs);
  ASSERT_EQ(graph.marks.size(), 1);
  EXPECT_EQ(graph.marks[0].step, 8);
}

TEST(SteppedTraceTest, ATraceWithoutStepsIsOneStretch) {
  KinetoTrace trace;
  trace.Op("op", 0, 40);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 30, 50, 7, 1);
  ASSERT_OK_AND_ASSIGN(const Kept kept, Keep(trace));
  EXPECT_THAT(kept.trace->steps(), IsEmpty());
  ASSERT_EQ(kept.trace->stretches(), 1);
  ASSERT_OK_AND_ASSIGN(const PathGraph graph, kept.trace->BuildGraph(0, 0, {}));
  EXPECT_EQ(EventsOf(graph), EventsOf(kept.whole));
}

}  // namespace
}  // namespace meridian
