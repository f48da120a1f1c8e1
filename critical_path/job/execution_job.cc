#include "critical_path/job/execution_job.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "xla_profiler/base/picoseconds.h"

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

// Builds the graph of one rank.
class RankBuilder {
 public:
  // `nodes` are the rank's nodes of the execution. Their events are written to `events`, by node.
  RankBuilder(const TimedExecution& execution, int64_t rank, std::vector<NodeIndex> nodes,
              int64_t base_ns, std::vector<GraphEventId>* events)
      : execution_(execution), nodes_(std::move(nodes)), events_(*events) {
    out_.rank = rank;
    graph_.base_ns = base_ns;
  }

  // Returns nullopt when nothing is in the window.
  std::optional<RankGraph> Build(const std::optional<RankWindow>& window) {
    if (!ChooseNodes(window)) return std::nullopt;
    AddEvents();
    ListDeviceEnds();
    for (const NodeIndex node : nodes_) AddNodeEdges(node);
    AddWindowEnd();
    return std::move(out_);
  }

 private:
  const TimedNode& Timed(NodeIndex node) const { return execution_.nodes[node]; }
  const Resource& ResourceOf(NodeIndex node) const { return execution_.graph.resource(node); }
  int64_t Ps(int64_t time_ns) const { return (time_ns - graph_.base_ns) * kPsPerNs; }
  int64_t Time(InstantId instant) const { return graph_.Time(instant); }

  bool ChooseNodes(const std::optional<RankWindow>& window) {
    if (nodes_.empty()) return false;
    if (window.has_value()) {
      window_ = *window;
      if (window_.end_ns < window_.start_ns) return false;
    } else {
      window_ = {Timed(nodes_[0]).start_ns, Timed(nodes_[0]).end_ns};
      for (const NodeIndex node : nodes_) {
        window_.start_ns = std::min(window_.start_ns, Timed(node).start_ns);
        window_.end_ns = std::max(window_.end_ns, Timed(node).end_ns);
      }
    }
    nodes_.erase(std::remove_if(nodes_.begin(), nodes_.end(),
                                [&](NodeIndex node) { return !IsInWindow(Timed(node)); }),
                 nodes_.end());
    std::stable_sort(nodes_.begin(), nodes_.end(), [&](NodeIndex a, NodeIndex b) {
      return Timed(a).start_ns < Timed(b).start_ns;
    });
    graph_.window_start_ps = Ps(window_.start_ns);
    graph_.window_end_ps = Ps(window_.end_ns);
    return !nodes_.empty();
  }

  bool IsInWindow(const TimedNode& node) const {
    if (node.start_ns == node.end_ns) {
      return node.start_ns >= window_.start_ns && node.start_ns <= window_.end_ns;
    }
    return node.start_ns < window_.end_ns && node.end_ns > window_.start_ns;
  }

  void AddEvents() {
    std::map<ResourceIndex, LaneId> lanes;
    const std::string process = absl::StrCat("rank ", out_.rank);
    for (const NodeIndex node : nodes_) {
      const auto [lane, is_new] = lanes.emplace(execution_.graph.resource_index(node),
                                                static_cast<LaneId>(graph_.lanes.size()));
      const Resource& resource = ResourceOf(node);
      if (is_new) {
        graph_.lanes.push_back({out_.rank, IsHost(resource) ? TrackKind::kHost : TrackKind::kDevice,
                                process, ResourceName(resource)});
      }
      GraphEvent event;
      event.name = graph_.names.Intern(execution_.graph.name(node));
      event.lane = lane->second;
      event.start_ps = std::max(Ps(Timed(node).start_ns), graph_.window_start_ps);
      event.duration_ps = std::min(Ps(Timed(node).end_ns), graph_.window_end_ps) - event.start_ps;
      event.category = Timed(node).category;
      event.step = Timed(node).step.value_or(kNoStep);
      event.position = static_cast<uint32_t>(
          std::min<uint64_t>(execution_.graph.id(node), std::numeric_limits<uint32_t>::max()));
      events_[node] = static_cast<GraphEventId>(graph_.events.size());
      graph_.events.push_back(event);
    }
    AddInstants(&graph_);
  }

  void ListDeviceEnds() {
    for (const NodeIndex node : nodes_) {
      if (!IsHost(ResourceOf(node))) device_ends_.push_back(node);
    }
    std::stable_sort(device_ends_.begin(), device_ends_.end(),
                     [&](NodeIndex a, NodeIndex b) { return Timed(a).end_ns < Timed(b).end_ns; });
  }

  void AddNodeEdges(NodeIndex node) {
    const GraphEventId event = events_[node];
    AddStartEdges(node, event);
    graph_.edges.push_back({StartInstant(event), EndInstant(event),
                            graph_.events[event].duration_ps, event, EdgeType::kOperator,
                            Timed(node).bound_by});
  }

  void AddStartEdges(NodeIndex node, GraphEventId event) {
    Causes causes;
    bool is_launched = IsHost(ResourceOf(node));
    const absl::Span<const NodeIndex> sources = execution_.graph.dependencies(node);
    const absl::Span<const EdgeKinds> kinds = execution_.graph.dependency_kinds(node);
    for (size_t i = 0; i < sources.size(); ++i) {
      is_launched = is_launched || kinds[i].Contains(EdgeKind::kLaunch);
      AddCause(node, event, sources[i], &causes);
    }
    if (Timed(node).cause != kNoNodeIndex) AddCause(node, event, Timed(node).cause, &causes);
    if (!is_launched && execution_.infer_waits) {
      if (const NodeIndex before = LastEndedBefore(node); before != kNoNodeIndex) {
        AddCause(node, event, before, &causes);
      }
      // Nobody launched it, so that the time between is not a delay of the device but the host's.
      for (Cause& cause : causes) {
        if (cause.type == EdgeType::kOperator) continue;
        cause.bound_by = BoundBy::kHostGap;
        cause.event = kNoEvent;
      }
    }
    if (causes.empty()) {
      // It is what the rank began with, or it was launched before the window.
      const bool is_host_time = IsHost(ResourceOf(node)) || !is_launched;
      const int64_t delay_ps = Time(StartInstant(event)) - graph_.window_start_ps;
      causes.push_back(
          is_host_time ? Cause{kWindowStart, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent}
                       : Cause{kWindowStart, EdgeType::kKernelLaunchDelay,
                               StartDelayBoundBy(BoundBy::kKernelLaunchOverhead, delay_ps), event});
    }
    AddCauses(StartInstant(event), /*has_time=*/true, &causes, &graph_);
  }

  void AddCause(NodeIndex node, GraphEventId event, NodeIndex source, Causes* causes) const {
    const GraphEventId from = EventOf(execution_, events_, source);
    if (from == kNoEvent || from == event) return;
    const int64_t start_ps = Time(StartInstant(event));
    if (Time(EndInstant(from)) > start_ps) {
      if (Time(StartInstant(from)) > start_ps) return;
      causes->push_back({StartInstant(from), EdgeType::kOperator, Timed(source).bound_by, from});
      return;
    }
    const bool from_host = IsHost(ResourceOf(source)), to_host = IsHost(ResourceOf(node));
    const int64_t delay_ps = start_ps - Time(EndInstant(from));
    Cause cause;
    cause.instant = EndInstant(from);
    if (to_host) {
      cause.type = from_host ? EdgeType::kDependency : EdgeType::kSyncDependency;
      cause.bound_by = BoundBy::kHostGap;
    } else if (from_host) {
      cause.type = EdgeType::kKernelLaunchDelay;
      cause.bound_by = StartDelayBoundBy(BoundBy::kKernelLaunchOverhead, delay_ps);
      cause.event = event;
    } else {
      cause.type = ResourceOf(source) == ResourceOf(node) ? EdgeType::kKernelKernelDelay
                                                          : EdgeType::kSyncDependency;
      cause.bound_by = StartDelayBoundBy(BoundBy::kKernelKernelOverhead, delay_ps);
      cause.event = event;
    }
    causes->push_back(cause);
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

  void AddWindowEnd() {
    std::vector<InstantId> last_of_lane(graph_.lanes.size(), kNoInstant);
    InstantId last = kNoInstant;
    for (GraphEventId event = 0; event < graph_.events.size(); ++event) {
      InstantId& lane = last_of_lane[graph_.events[event].lane];
      const InstantId end = EndInstant(event);
      if (lane == kNoInstant || Time(end) >= Time(lane)) lane = end;
      if (last == kNoInstant || Time(end) > Time(last)) last = end;
    }
    // Of a lane's ends at one time the last counts, of all lanes' the first.
    if (std::find(last_of_lane.begin(), last_of_lane.end(), last) == last_of_lane.end()) {
      last_of_lane.push_back(last);
    }
    const InstantId window_end = *graph_.end_instant;
    for (const InstantId end : last_of_lane) {
      if (end == last) {
        graph_.AddTimed(end, window_end, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent);
      } else {
        graph_.AddUntimed(end, window_end, EdgeType::kDependency);
      }
    }
  }

  const TimedExecution& execution_;
  std::vector<NodeIndex> nodes_;
  std::vector<GraphEventId>& events_;
  RankWindow window_;
  RankGraph out_;
  PathGraph& graph_ = out_.graph;
  // The rank's device work in order of the ends.
  std::vector<NodeIndex> device_ends_;
};

}  // namespace

void AddMeeting(std::vector<NodeIndex> arrivals, std::vector<NodeIndex> departures,
                TimedExecution* execution) {
  ExecutionMeeting& meeting = execution->meetings.emplace_back();
  meeting.name = std::string(execution->graph.name(arrivals[0]));
  for (const NodeIndex node : arrivals) {
    if (!meeting.step.has_value()) meeting.step = execution->nodes[node].step;
  }
  meeting.arrivals = std::move(arrivals);
  meeting.departures = std::move(departures);
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
  JobGraph job;
  job.windows_are_chosen = !windows.empty();
  // By node of the execution: its event in its rank's graph; kNoEvent when it is in no window.
  std::vector<GraphEventId> events(execution.nodes.size(), kNoEvent);
  // By rank: its position in JobGraph::ranks.
  std::map<int64_t, size_t> positions;
  for (auto& [rank, nodes] : ranks) {
    const auto window = windows.find(rank);
    std::optional<RankGraph> graph =
        RankBuilder(execution, rank, std::move(nodes), begin_ns, &events)
            .Build(window == windows.end() ? std::nullopt : std::make_optional(window->second));
    if (!graph.has_value()) continue;
    positions[rank] = job.ranks.size();
    job.ranks.push_back(*std::move(graph));
  }
  if (job.ranks.empty()) {
    return absl::FailedPreconditionError("the window is empty: nothing ran in it on any rank");
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
                  members(meeting.departures, EndInstant)};
    if (added.arrivals.size() < 2 || added.departures.empty()) continue;
    job.meetings.push_back(std::move(added));
  }
  return job;
}

}  // namespace meridian
