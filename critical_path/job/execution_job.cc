#include "critical_path/job/execution_job.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "critical_path/trace/trace_graph.h"
#include "critical_path/trace/trace_window.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {
namespace {

// How much work that had ended is looked at to find one that may have been waited for. Only work
// that begins and ends at the very moment is passed over.
constexpr int kMaxCandidates = 64;

bool IsHost(const Resource& resource) { return resource.kind == ResourceKind::kHostThread; }

// Returns the node's event, or that of the node whose kernel it ran as.
GraphEventId EventOf(const TimedExecution& execution, const std::vector<GraphEventId>& events,
                     NodeIndex node) {
  const NodeIndex same = execution.nodes[node].same_kernel_as;
  return events[same == kNoNodeIndex ? node : same];
}

// Returns by node whether it launches work.
std::vector<bool> FindLaunches(const ExecutionGraph& graph) {
  std::vector<bool> launches(graph.node_count());
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    for (size_t i = 0; i < graph.dependencies(node).size(); ++i) {
      if (!graph.dependency_kinds(node)[i].Contains(EdgeKind::kLaunch)) continue;
      launches[graph.dependencies(node)[i]] = true;
    }
  }
  return launches;
}

class RankBuilder {
 public:
  // `nodes` are the rank's nodes of the execution. `launches` says of each node of the execution
  // whether it launches work; the nodes' events are written to `events`, by node.
  RankBuilder(const TimedExecution& execution, const std::vector<bool>& launches, int64_t rank,
              std::vector<NodeIndex> nodes, int64_t base_ns, std::vector<GraphEventId>* events)
      : execution_(execution),
        launches_(launches),
        rank_(rank),
        nodes_(std::move(nodes)),
        events_(*events) {
    table_.set_base_ns(base_ns);
  }

  // Returns nullopt when nothing is in the window.
  std::optional<RankGraph> Build(const std::optional<RankWindow>& window) {
    if (!ChooseNodes(window)) return std::nullopt;
    AddRows();
    for (EventRow row = 0; row < nodes_.size(); ++row) AddDependencies(row);
    SortDependencies(&dependencies_.edges);
    RankEvents in;
    in.table = &table_;
    in.positions = positions_;
    in.dependencies = &dependencies_;
    in.bound_by = bound_by_;
    in.steps = steps_;
    TraceGraphOptions options;
    options.rank = rank_;
    options.hosts_are_hidden = execution_.hosts_are_hidden;
    return RankGraph{rank_, BuildTraceGraph(in, window_, chosen_, options)};
  }

 private:
  const TimedNode& Timed(NodeIndex node) const { return execution_.nodes[node]; }
  int64_t Ps(int64_t time_ns) const { return (time_ns - table_.base_ns()) * kPsPerNs; }
  bool IsOnHost(NodeIndex node) const { return IsHost(execution_.graph.resource(node)); }
  // Time between the calls of a thread is no event, unless something is launched in it.
  bool IsThreadGap(NodeIndex node) const {
    return IsOnHost(node) && Timed(node).bound_by == BoundBy::kHostGap && !launches_[node];
  }

  bool ChooseNodes(const std::optional<RankWindow>& window) {
    RankWindow span = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (const NodeIndex node : nodes_) {
      span.start_ns = std::min(span.start_ns, Timed(node).start_ns);
      span.end_ns = std::max(span.end_ns, Timed(node).end_ns);
    }
    if (window.has_value()) span = *window;
    if (span.end_ns < span.start_ns) return false;
    nodes_.erase(std::remove_if(nodes_.begin(), nodes_.end(),
                                [&](NodeIndex node) {
                                  return IsThreadGap(node) || !IsInWindow(Timed(node), span);
                                }),
                 nodes_.end());
    std::stable_sort(nodes_.begin(), nodes_.end(), [&](NodeIndex a, NodeIndex b) {
      return Timed(a).start_ns < Timed(b).start_ns;
    });
    window_.start_ps = Ps(span.start_ns);
    window_.end_ps = chosen_.end_ps = Ps(span.end_ns);
    return !nodes_.empty();
  }

  static bool IsInWindow(const TimedNode& node, const RankWindow& window) {
    if (node.start_ns == node.end_ns) {
      return node.start_ns >= window.start_ns && node.start_ns <= window.end_ns;
    }
    return node.start_ns < window.end_ns && node.end_ns > window.start_ns;
  }

  // Row i of the table, and event i of the graph, is that of nodes_[i].
  void AddRows() {
    std::map<ResourceIndex, TrackId> tracks;
    const std::string process = absl::StrCat("rank ", rank_);
    int64_t last_end_ns = std::numeric_limits<int64_t>::min();
    for (const NodeIndex node : nodes_) {
      const TimedNode& timed = Timed(node);
      const auto [track, is_new] = tracks.emplace(execution_.graph.resource_index(node), 0);
      if (is_new) {
        Track added;
        added.kind = IsOnHost(node) ? TrackKind::kHost : TrackKind::kDevice;
        added.process = process;
        added.thread = ResourceName(execution_.graph.resource(node));
        track->second = table_.AddTrack(std::move(added));
      }
      EventRecord event;
      event.track = track->second;
      event.name = table_.InternName(execution_.graph.name(node));
      event.start_ps = Ps(timed.start_ns);
      event.duration_ps = Ps(timed.end_ns) - event.start_ps;
      event.category = timed.category;
      chosen_.rows.push_back(table_.Add(event));
      events_[node] = chosen_.rows.back();
      bound_by_.push_back(timed.bound_by);
      steps_.push_back(timed.step.has_value() ? *timed.step : kNoStep);
      positions_.push_back(static_cast<uint32_t>(
          std::min<uint64_t>(execution_.graph.id(node), std::numeric_limits<uint32_t>::max())));
      if (!IsOnHost(node)) device_ends_.push_back(node);
      if (timed.end_ns <= last_end_ns) continue;
      last_end_ns = timed.end_ns;
      window_.end_track = event.track;
    }
    std::stable_sort(device_ends_.begin(), device_ends_.end(),
                     [&](NodeIndex a, NodeIndex b) { return Timed(a).end_ns < Timed(b).end_ns; });
  }

  void AddDependencies(EventRow row) {
    const NodeIndex node = nodes_[row];
    bool is_launched = IsOnHost(node);
    const absl::Span<const EdgeKinds> kinds = execution_.graph.dependency_kinds(node);
    for (const EdgeKinds kind : kinds) is_launched |= kind.Contains(EdgeKind::kLaunch);
    // What was waited for in gaps, the call after them waited for.
    std::vector<NodeIndex> passed_on = {node};
    while (!passed_on.empty()) {
      const NodeIndex waiting = passed_on.back();
      passed_on.pop_back();
      for (const NodeIndex source : execution_.graph.dependencies(waiting)) {
        AddDependency(row, source);
        if (IsOnHost(node) && IsThreadGap(source)) passed_on.push_back(source);
      }
    }
    if (Timed(node).cause != kNoNodeIndex) AddDependency(row, Timed(node).cause);
    if (is_launched || !execution_.hosts_are_hidden) return;
    if (const NodeIndex before = LastEndedBefore(node); before != kNoNodeIndex) {
      AddDependency(row, before);
    }
  }

  void AddDependency(EventRow row, NodeIndex source) {
    const GraphEventId from = EventOf(execution_, events_, source);
    if (from == kNoEvent || from == row) return;
    const Resource& resource = execution_.graph.resource(nodes_[row]);
    const bool same_resource = execution_.graph.resource(source) == resource;
    if (IsHost(resource)) {
      // The calls of a thread follow each other anyway.
      if (!same_resource) {
        dependencies_.edges.push_back({from, row, DeviceDependencyKind::kCallStart});
      }
      return;
    }
    dependencies_.edges.push_back({from, row,
                                   IsOnHost(source) ? DeviceDependencyKind::kLaunch
                                   : same_resource  ? DeviceDependencyKind::kStreamOrder
                                                    : DeviceDependencyKind::kEventWait});
  }

  // Returns the device's last work that had ended, and begun earlier, when the node started.
  NodeIndex LastEndedBefore(NodeIndex node) const {
    const int64_t start_ns = Timed(node).start_ns;
    auto it = std::upper_bound(
        device_ends_.begin(), device_ends_.end(), start_ns,
        [&](int64_t time_ns, NodeIndex other) { return time_ns < Timed(other).end_ns; });
    for (int i = 0; i < kMaxCandidates && it != device_ends_.begin(); ++i) {
      --it;
      if (Timed(*it).start_ns < start_ns) return *it;
    }
    return kNoNodeIndex;
  }

  const TimedExecution& execution_;
  const std::vector<bool>& launches_;
  const int64_t rank_;
  std::vector<NodeIndex> nodes_;
  std::vector<GraphEventId>& events_;
  TraceWindow window_;
  WindowRows chosen_;
  EventTable table_;
  DeviceDependencies dependencies_;
  // What RankEvents has to say of each row.
  std::vector<uint32_t> positions_;
  std::vector<BoundBy> bound_by_;
  std::vector<int64_t> steps_;
  // The rank's device work in order of the ends.
  std::vector<NodeIndex> device_ends_;
};

}  // namespace

void AddMeeting(std::vector<NodeIndex> arrivals, std::vector<NodeIndex> departures,
                std::optional<GraphTransfer> transfer, TimedExecution* execution) {
  ExecutionMeeting& meeting = execution->meetings.emplace_back();
  meeting.name = std::string(execution->graph.name(arrivals[0]));
  for (const NodeIndex node : arrivals) {
    if (!meeting.step.has_value()) meeting.step = execution->nodes[node].step;
  }
  meeting.arrivals = std::move(arrivals);
  meeting.departures = std::move(departures);
  meeting.transfer = std::move(transfer);
}

BoundBy BoundByOf(absl::string_view op_kind, bool on_host, bool communicates) {
  if (op_kind == kHostGapOpKind) return BoundBy::kHostGap;
  if (on_host) return BoundBy::kCpu;
  if (communicates || op_kind == kUnmatchedOpKind || op_kind == kLocalOpKind) {
    return BoundBy::kGpuCommunication;
  }
  return BoundBy::kGpuCompute;
}

absl::StatusOr<JobGraph> BuildExecutionJob(const TimedExecution& execution,
                                           const std::map<int64_t, RankWindow>& windows) {
  std::map<int64_t, std::vector<NodeIndex>> ranks;
  int64_t begin_ns = std::numeric_limits<int64_t>::max();
  int64_t end_ns = std::numeric_limits<int64_t>::min();
  for (NodeIndex node = 0; node < execution.nodes.size(); ++node) {
    const TimedNode& timed = execution.nodes[node];
    if (!timed.is_chosen) continue;
    begin_ns = std::min(begin_ns, timed.start_ns);
    end_ns = std::max(end_ns, timed.end_ns);
    if (timed.same_kernel_as == kNoNodeIndex) ranks[execution.graph.rank(node)].push_back(node);
  }
  for (const auto& [rank, window] : windows) {
    begin_ns = std::min(begin_ns, window.start_ns);
    end_ns = std::max(end_ns, window.end_ns);
  }
  int64_t span_ns = 0, span_ps = 0;
  if (!ranks.empty() && (__builtin_sub_overflow(end_ns, begin_ns, &span_ns) ||
                         __builtin_mul_overflow(span_ns, kPsPerNs, &span_ps))) {
    return absl::OutOfRangeError("the first start and the last end lie over 106 days apart");
  }
  const std::vector<bool> launches = FindLaunches(execution.graph);
  JobGraph job;
  job.windows_are_chosen = !windows.empty();
  // By node of the execution: its event in its rank's graph; kNoEvent when it is in no window.
  std::vector<GraphEventId> events(execution.nodes.size(), kNoEvent);
  std::vector<int64_t> numbers;
  for (const auto& [rank, nodes] : ranks) numbers.push_back(rank);
  std::vector<std::optional<RankGraph>> graphs(numbers.size());
  // A rank's nodes depend on nodes of their own rank only.
  RETURN_IF_ERROR(ParallelFor(graphs.size(), [&](size_t i) {
    const auto window = windows.find(numbers[i]);
    graphs[i] =
        RankBuilder(execution, launches, numbers[i], std::move(ranks.at(numbers[i])), begin_ns,
                    &events)
            .Build(window == windows.end() ? std::nullopt : std::make_optional(window->second));
    return absl::OkStatus();
  }));
  // By rank: its position in JobGraph::ranks.
  std::map<int64_t, size_t> positions;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (!graphs[i].has_value()) continue;
    positions[numbers[i]] = job.ranks.size();
    job.ranks.push_back(*std::move(graphs[i]));
  }
  if (job.ranks.empty()) {
    return FailedPrecondition("the window is empty: nothing ran in it on any rank");
  }
  // Members that are not in their rank's window are left out.
  const auto members = [&](const std::vector<NodeIndex>& nodes,
                           InstantId (*instant_of)(GraphEventId)) {
    std::vector<RankInstant> found;
    for (const NodeIndex node : nodes) {
      const GraphEventId event = EventOf(execution, events, node);
      if (event == kNoEvent) continue;
      found.push_back({positions.at(execution.graph.rank(node)), instant_of(event)});
    }
    return found;
  };
  for (const ExecutionMeeting& meeting : execution.meetings) {
    Meeting added{meeting.name, meeting.step, members(meeting.arrivals, StartInstant),
                  members(meeting.departures, EndInstant), meeting.transfer};
    if (added.arrivals.size() < 2 || added.departures.empty()) continue;
    job.meetings.push_back(std::move(added));
  }
  return job;
}

}  // namespace meridian
