#include "critical_path/job/trace_analysis.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/host_device_link.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/op_tensors.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "critical_path/hta/hta_frame.h"
#include "critical_path/hta/hta_launches.h"
#include "critical_path/trace/trace_graph.h"
#include "critical_path/trace/trace_window.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {
namespace {

constexpr char kNoSyncEvents[] =
    "the trace has no cuda_sync events, so that waits for CUDA events are unknown";

void NoteCount(uint64_t count, absl::string_view what, std::vector<std::string>* notes) {
  if (count > 0) notes->push_back(absl::StrCat(count, " x ", what));
}

void NoteProblems(const TraceJsonProblems& problems, std::vector<std::string>* notes) {
  if (problems.total() > 0) notes->push_back(absl::StrCat("skipped events: ", problems.ToString()));
}

absl::StatusOr<TraceAnalysis> AnalyzeAsHta(absl::string_view text, absl::string_view name,
                                           const TraceAnalysisOptions& options) {
  TraceAnalysis analysis;
  ASSIGN_OR_RETURN(const HtaFrame frame, LoadHtaFrame(text, name));
  ASSIGN_OR_RETURN(const HtaWindow window, ChooseHtaWindow(frame, options.window));
  const HtaLaunches launches(frame);
  ASSIGN_OR_RETURN(analysis.graph, BuildHtaGraph(frame, window, launches, options));
  NoteProblems(frame.problems, &analysis.source.notes);
  return analysis;
}

// Puts what device work needs into the graph, by the tensors of its operators. What an operator
// writes that gives no tensor is unknown.
absl::Status AddNeeds(const InputFile& file, const TraceJsonTable& trace, absl::string_view text,
                      PathGraph* graph) {
  ASSIGN_OR_RETURN(const HostTrace host, ReadHostTrace(file.bytes(), file.path()));
  const HostDeviceLink link = LinkHostTrace(host, trace.table, text);
  RETURN_IF_ERROR(Annotate(CheckLink(host, trace.table, link), file.path()));
  RankTimeline timeline = BuildRankTimeline(trace.table, text, link);
  timeline.edges.clear();
  // What overlaps is left out below: the graph knows which work only began early.
  for (TimelineNode& node : timeline.nodes) node.duration_ps = 0;
  AddTensorDependencies(host, &timeline);
  // The graph has its events in the order of the rows.
  std::vector<GraphEventId> event_of_row(trace.table.size(), kNoEvent);
  for (EventRow row = 0, id = 0; row < trace.table.size() && id < graph->events.size(); ++row) {
    if (trace.positions[row] == graph->events[id].position) event_of_row[row] = id++;
  }
  const auto add = [&](GraphEventId work, GraphEventId needed) {
    if (work == kNoEvent || needed == kNoEvent) return;
    const GraphEvent& before = graph->events[needed];
    if (before.start_ps + before.duration_ps > graph->events[work].start_ps) return;
    graph->needs.emplace_back(work, needed);
  };
  for (const DependencyEdge& edge : timeline.edges) {
    add(event_of_row[timeline.nodes[edge.node].row], event_of_row[timeline.nodes[edge.source].row]);
  }
  // By lane: the last work so far whose needs are unknown. All after it may need it.
  std::vector<GraphEventId> unknown(graph->lanes.size(), kNoEvent);
  for (const TimelineNode& node : timeline.nodes) {
    const GraphEventId id = node.on_host ? kNoEvent : event_of_row[node.row];
    if (id == kNoEvent) continue;
    GraphEvent& work = graph->events[id];
    add(id, unknown[work.lane]);
    work.needs_are_known =
        node.tensor_op != kNoHostOp &&
        absl::c_any_of(TensorsIn(host.Details(node.tensor_op).outputs.values),
                       [](const HostTensor& tensor) { return tensor.on_device; });
    if (!work.needs_are_known) unknown[work.lane] = id;
  }
  return absl::OkStatus();
}

bool HasSyncEvents(const EventTable& table) {
  for (EventRow row = 0; row < table.size(); ++row) {
    if (table.category(row) == EventCategory::kDeviceSync) return true;
  }
  return false;
}

// Returns how many events have a negative ts, which profilers do not write: where ts counts from months
// ago, they lie months before all others.
uint64_t CountNegativeTimes(const TraceJsonTable& trace) {
  const absl::int128 zero_ps =
      (absl::int128(trace.header.base_time_ns.value_or(0)) - trace.table.base_ns()) * kPsPerNs;
  uint64_t count = 0;
  for (EventRow row = 0; row < trace.table.size(); ++row) {
    count += trace.table.start_ps(row) < zero_ps;
  }
  return count;
}

// What a trace says about its graph, beside the window.
struct GraphInputs {
  explicit GraphInputs(const TraceJsonTable& trace, absl::string_view text)
      : dependencies(FindTraceJsonDependencies(text, trace.table)) {
    events.table = &trace.table;
    events.positions = trace.positions;
    events.dependencies = &dependencies;
  }

  const DeviceDependencies dependencies;
  RankEvents events;
};

void NoteMissing(const TraceJsonTable& trace, const DeviceDependencies& dependencies,
                 std::vector<std::string>* notes) {
  NoteProblems(trace.problems, notes);
  NoteCount(CountNegativeTimes(trace), "negative ts: the whole trace begins with the first of them",
            notes);
  if (!HasSyncEvents(trace.table)) notes->push_back(kNoSyncEvents);
  NoteCount(dependencies.inferred, "waits inferred from the times of the work", notes);
}

absl::StatusOr<TraceAnalysis> AnalyzeAsOurs(absl::string_view text, absl::string_view name,
                                            const TraceAnalysisOptions& options) {
  ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(text, name));
  RETURN_IF_ERROR(CheckOneRank(trace, name));
  const std::optional<int64_t> rank = trace.header.Find("distributedInfo").Find("rank").AsInt64();
  return AnalyzeLoadedTrace(trace, text, rank.value_or(0), options);
}

}  // namespace

absl::StatusOr<TraceAnalysis> AnalyzeLoadedTrace(const TraceJsonTable& trace,
                                                 absl::string_view text, int64_t rank,
                                                 const TraceAnalysisOptions& options) {
  TraceAnalysis analysis;
  const GraphInputs in(trace, text);
  ASSIGN_OR_RETURN(const TraceWindow window,
                   ChooseTraceWindow(trace.table, in.dependencies, options.window));
  TraceGraphOptions graph_options;
  graph_options.rank = rank;
  graph_options.data_load_events = options.data_load_events;
  ASSIGN_OR_RETURN(analysis.graph, BuildTraceGraph(in.events, window, graph_options));
  if (options.host_trace != nullptr) {
    RETURN_IF_ERROR(AddNeeds(*options.host_trace, trace, text, &analysis.graph));
  }
  NoteMissing(trace, in.dependencies, &analysis.source.notes);
  return analysis;
}

absl::StatusOr<SteppedTrace> KeepLoadedTrace(const TraceJsonTable& trace, absl::string_view text,
                                             FileSystem& file_system, const std::string& folder,
                                             const TraceGraphOptions& options,
                                             std::vector<std::string>* notes) {
  const GraphInputs in(trace, text);
  ASSIGN_OR_RETURN(const TraceWindow window, ChooseTraceWindow(trace.table, in.dependencies, {}));
  NoteMissing(trace, in.dependencies, notes);
  return SteppedTrace::Create(in.events, window, options, file_system, folder);
}

absl::StatusOr<TraceAnalysis> AnalyzeTraceJson(absl::string_view text, absl::string_view name,
                                               const TraceAnalysisOptions& options) {
  absl::StatusOr<TraceAnalysis> analysis = options.hta_compatible
                                               ? AnalyzeAsHta(text, name, options)
                                               : AnalyzeAsOurs(text, name, options);
  if (!analysis.ok()) {
    // What reads the text has named the trace in the error already.
    return absl::StartsWith(analysis.status().message(), name) ? analysis.status()
                                                               : Annotate(analysis.status(), name);
  }
  analysis->source.trace = std::string(name);
  analysis->source.window = options.window;
  analysis->source.hta_compatible = options.hta_compatible;
  return analysis;
}

}  // namespace meridian
