#include "critical_path/trace_graph.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "critical_path/thread_walk.h"
#include "critical_path/window_rows.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {
namespace {

// How many stretches of other threads are looked at to find who continued a thread. One of each
// thread at most is in the way.
constexpr int kMaxCandidates = 64;

constexpr NodeId kWindowStart = 0;

NodeId StartNode(GraphEventId event) { return 1 + 2 * event; }
NodeId EndNode(GraphEventId event) { return 2 + 2 * event; }

bool IsHostWait(DeviceDependencyKind kind) {
  return kind == DeviceDependencyKind::kEventSync || kind == DeviceDependencyKind::kStreamSync ||
         kind == DeviceDependencyKind::kDeviceSync || kind == DeviceDependencyKind::kBlockingCopy;
}

// What matters about a name, found once for each.
struct NameTraits {
  bool loads_data = false;
  bool communicates = false;
};

// Time during which a thread was within operators and calls without a break.
struct Stretch {
  LaneId lane = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  NodeId last = 0;
};

// A thread comes back at a node after it was outside of all operators since another.
struct Gap {
  LaneId lane = 0;
  NodeId before = 0;
  NodeId after = 0;
};

class Builder {
 public:
  Builder(const EventTable& table, absl::Span<const uint32_t> positions,
          const DeviceDependencies& dependencies, const TraceWindow& window,
          const TraceGraphOptions& options)
      : table_(table),
        positions_(positions),
        dependencies_(dependencies),
        window_(window),
        options_(options),
        event_of_row_(table.size(), kNoEvent),
        is_worker_(FindWorkers(table, dependencies)),
        lane_of_track_(table.tracks().size(), kNoLane),
        graph_names_(table.names().size(), kNoName) {}

  absl::StatusOr<TraceGraph> Build();

 private:
  static constexpr LaneId kNoLane = std::numeric_limits<LaneId>::max();
  static constexpr NameId kNoName = std::numeric_limits<NameId>::max();

  // Returns for each name of the table whether it is that of a data loader.
  std::vector<bool> FindDataLoaders() const;
  void AddEvents(absl::Span<const EventRow> rows);
  LaneId FindLane(TrackId track);
  NameId FindName(NameId table_name);
  void AddNodes();

  int64_t Time(NodeId node) const { return graph_.nodes[node].time_ps; }
  // An edge that stands for all the time between its ends, and one that stands for none.
  void AddTimed(NodeId from, NodeId to, EdgeType type, BoundBy bound_by, GraphEventId event);
  void AddUntimed(NodeId from, NodeId to, EdgeType type);

  void AddDeviceEdges();
  void AddWorkStart(GraphEventId work, absl::Span<const DeviceDependency> causes);
  void AddHostEdges();
  void AddThread(LaneId lane, bool is_worker, absl::Span<const GraphEventId> events);
  // Adds the edges into the end of a call that waits for device work, besides that from the node
  // before on its thread. Returns true when the wait ended it.
  bool AddHostWaits(GraphEventId call, NodeId before);
  void ChooseHome();
  void AddGaps();
  // Return what a thread may have waited for in a gap, or kNoNode: the last stretch of another
  // thread that lies in it; the last thing that the home thread did in it.
  NodeId FindStretchIn(const Gap& gap) const;
  NodeId FindHomeNodeIn(const Gap& gap) const;
  NodeId FindAwaited(const Gap& gap) const;
  // Returns the node that was awaited, or kNoNode.
  NodeId AddGap(const Gap& gap);
  // Returns the last node of all lanes of that kind, or kNoNode.
  NodeId LatestNode(TrackKind kind) const;
  // Returns what the window ends with.
  NodeId LastNode() const;
  void AddWindowEnd();

  const EventTable& table_;
  const absl::Span<const uint32_t> positions_;
  const DeviceDependencies& dependencies_;
  const TraceWindow& window_;
  const TraceGraphOptions& options_;
  TraceGraph result_;
  PathGraph& graph_ = result_.graph;

  std::vector<GraphEventId> event_of_row_;
  // By track.
  const std::vector<bool> is_worker_;
  std::vector<LaneId> lane_of_track_;
  // By the table's names, and by the graph's.
  std::vector<bool> loads_data_;
  std::vector<NameId> graph_names_;
  std::vector<NameTraits> traits_;
  // For each lane its last node.
  std::vector<NodeId> last_nodes_;
  // The causes of each call's end, a range of the dependencies.
  absl::flat_hash_map<GraphEventId, absl::Span<const DeviceDependency>> waits_of_call_;
  // Of the workers, in order of process, then end.
  std::vector<Stretch> stretches_;
  std::vector<Gap> gaps_;
  // The thread whose window it is, else the busiest worker; and its nodes in order.
  LaneId home_ = kNoLane;
  std::vector<NodeId> home_nodes_;
};

absl::StatusOr<TraceGraph> Builder::Build() {
  loads_data_ = FindDataLoaders();
  ASSIGN_OR_RETURN(const WindowRows chosen,
                   ChooseWindowRows(table_, dependencies_, window_, loads_data_));
  result_.without_launch = chosen.without_launch;
  graph_.base_ns = table_.base_ns();
  graph_.window_start_ps = window_.start_ps;
  graph_.window_end_ps = chosen.end_ps;
  AddEvents(chosen.rows);
  AddNodes();
  ChooseHome();
  AddDeviceEdges();
  AddHostEdges();
  AddGaps();
  AddWindowEnd();
  return std::move(result_);
}

std::vector<bool> Builder::FindDataLoaders() const {
  std::vector<bool> loads_data(table_.names().size());
  for (NameId name = 0; name < loads_data.size(); ++name) {
    for (const std::string& part : options_.data_load_events) {
      if (absl::StrContains(table_.names().Get(name), part)) loads_data[name] = true;
    }
  }
  return loads_data;
}

LaneId Builder::FindLane(TrackId track_id) {
  LaneId& lane = lane_of_track_[track_id];
  if (lane == kNoLane) {
    const Track& track = table_.track(track_id);
    lane = static_cast<LaneId>(graph_.lanes.size());
    graph_.lanes.push_back({options_.rank, track.kind, track.process, track.thread});
  }
  return lane;
}

NameId Builder::FindName(NameId table_name) {
  NameId& name = graph_names_[table_name];
  if (name == kNoName) {
    const absl::string_view text = table_.names().Get(table_name);
    name = graph_.names.Intern(text);
    traits_.push_back({loads_data_[table_name], IsCommunicationKernel(text)});
  }
  return name;
}

void Builder::AddEvents(absl::Span<const EventRow> rows) {
  graph_.events.reserve(rows.size());
  for (EventRow row : rows) {
    event_of_row_[row] = static_cast<GraphEventId>(graph_.events.size());
    GraphEvent event;
    event.name = FindName(table_.name_id(row));
    event.lane = FindLane(table_.track_id(row));
    event.start_ps = std::max(table_.start_ps(row), graph_.window_start_ps);
    event.duration_ps = std::min(table_.end_ps(row), graph_.window_end_ps) - event.start_ps;
    event.category = table_.category(row);
    event.position = positions_[row];
    graph_.events.push_back(event);
  }
}

void Builder::AddNodes() {
  graph_.nodes.reserve(2 * graph_.events.size() + 2);
  graph_.nodes.push_back({graph_.window_start_ps, kNoEvent, /*is_start=*/true});
  for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
    const GraphEvent& event = graph_.events[id];
    graph_.nodes.push_back({event.start_ps, id, /*is_start=*/true});
    graph_.nodes.push_back({event.start_ps + event.duration_ps, id, /*is_start=*/false});
  }
  graph_.end_node = static_cast<NodeId>(graph_.nodes.size());
  graph_.nodes.push_back({graph_.window_end_ps, kNoEvent, /*is_start=*/false});
  graph_.edges.reserve(3 * graph_.events.size());
  last_nodes_.assign(graph_.lanes.size(), kNoNode);
}

void Builder::AddTimed(NodeId from, NodeId to, EdgeType type, BoundBy bound_by,
                       GraphEventId event) {
  graph_.edges.push_back({from, to, Time(to) - Time(from), event, type, bound_by});
}

void Builder::AddUntimed(NodeId from, NodeId to, EdgeType type) {
  graph_.edges.push_back({from, to, 0, kNoEvent, type, BoundBy::kNothing});
}

void Builder::AddDeviceEdges() {
  const std::vector<DeviceDependency>& all = dependencies_.edges;
  // In order of rows, as the dependencies are.
  size_t next = 0;
  for (EventRow row = 0; row < table_.size(); ++row) {
    const size_t begin = next;
    while (next < all.size() && all[next].to == row) ++next;
    const GraphEventId event = event_of_row_[row];
    if (event == kNoEvent) continue;
    const auto causes = absl::MakeConstSpan(all).subspan(begin, next - begin);
    const GraphEvent& work = graph_.events[event];
    if (graph_.lanes[work.lane].kind == TrackKind::kHost) {
      if (!causes.empty()) waits_of_call_[event] = causes;
      continue;
    }
    AddWorkStart(event, causes);
    AddTimed(StartNode(event), EndNode(event), EdgeType::kOperator,
             traits_[work.name].communicates ? BoundBy::kGpuCommunication : BoundBy::kGpuCompute,
             event);
    NodeId& last = last_nodes_[work.lane];
    if (last == kNoNode || Time(EndNode(event)) >= Time(last)) last = EndNode(event);
  }
}

// What device work has to wait for, the better explanation first.
int Preference(EdgeType type) {
  switch (type) {
    case EdgeType::kKernelKernelDelay:
      return 0;
    case EdgeType::kSyncDependency:
      return 1;
    default:
      return 2;
  }
}

void Builder::AddWorkStart(GraphEventId work, absl::Span<const DeviceDependency> causes) {
  struct Cause {
    NodeId node;
    EdgeType type;
  };
  absl::InlinedVector<Cause, 8> found;
  for (const DeviceDependency& dependency : causes) {
    const GraphEventId from = event_of_row_[dependency.from];
    if (from == kNoEvent) continue;
    switch (dependency.kind) {
      case DeviceDependencyKind::kLaunch:
        found.push_back({StartNode(from), EdgeType::kKernelLaunchDelay});
        break;
      case DeviceDependencyKind::kStreamOrder:
        found.push_back({EndNode(from), EdgeType::kKernelKernelDelay});
        break;
      default:
        // Waits within one moment could make a circle, and explain nothing.
        if (Time(EndNode(from)) < Time(EndNode(work))) {
          found.push_back({EndNode(from), EdgeType::kSyncDependency});
        }
    }
  }
  // A wait may name the stream's own work.
  std::sort(found.begin(), found.end(), [](const Cause& a, const Cause& b) {
    return std::make_tuple(a.node, Preference(a.type)) <
           std::make_tuple(b.node, Preference(b.type));
  });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const Cause& a, const Cause& b) { return a.node == b.node; }),
              found.end());
  const NodeId start = StartNode(work);
  if (found.empty()) {
    // Launched before the window, or nobody knows when.
    AddTimed(kWindowStart, start, EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead,
             work);
    return;
  }
  const auto last =
      std::max_element(found.begin(), found.end(), [&](const Cause& a, const Cause& b) {
        return std::make_tuple(Time(a.node), -Preference(a.type)) <
               std::make_tuple(Time(b.node), -Preference(b.type));
      });
  for (auto cause = found.begin(); cause != found.end(); ++cause) {
    if (cause != last) {
      AddUntimed(cause->node, start, cause->type);
    } else {
      AddTimed(cause->node, start, cause->type,
               cause->type == EdgeType::kKernelLaunchDelay ? BoundBy::kKernelLaunchOverhead
                                                           : BoundBy::kKernelKernelOverhead,
               work);
    }
  }
}

void Builder::ChooseHome() {
  if (window_.thread.has_value() && is_worker_[*window_.thread]) {
    home_ = lane_of_track_[*window_.thread];
    if (home_ != kNoLane) return;
  }
  // Nested operators count more than once, but for all threads alike.
  std::vector<double> busy_ps(graph_.lanes.size());
  for (const GraphEvent& event : graph_.events) {
    busy_ps[event.lane] += static_cast<double>(event.duration_ps);
  }
  for (TrackId track = 0; track < lane_of_track_.size(); ++track) {
    const LaneId lane = lane_of_track_[track];
    if (lane == kNoLane || !is_worker_[track]) continue;
    if (home_ == kNoLane || busy_ps[lane] > busy_ps[home_]) home_ = lane;
  }
}

void Builder::AddHostEdges() {
  const TrackIndex index(table_);
  std::vector<GraphEventId> events;
  for (TrackId track = 0; track < table_.tracks().size(); ++track) {
    const LaneId lane = lane_of_track_[track];
    if (lane == kNoLane || graph_.lanes[lane].kind != TrackKind::kHost) continue;
    events.clear();
    for (EventRow row : index.Rows(track)) {
      if (event_of_row_[row] != kNoEvent) events.push_back(event_of_row_[row]);
    }
    // Cutting at the window's start makes unequal starts equal.
    const auto nests_before = [&](GraphEventId a, GraphEventId b) {
      const GraphEvent &x = graph_.events[a], &y = graph_.events[b];
      return std::make_tuple(x.start_ps, -x.duration_ps) <
             std::make_tuple(y.start_ps, -y.duration_ps);
    };
    if (!std::is_sorted(events.begin(), events.end(), nests_before)) {
      std::stable_sort(events.begin(), events.end(), nests_before);
    }
    AddThread(lane, is_worker_[track], events);
  }
}

void Builder::AddThread(LaneId lane, bool is_worker, absl::Span<const GraphEventId> events) {
  NodeId before = kWindowStart;
  int data_loads = 0;
  Stretch stretch;
  stretch.lane = lane;
  const auto visit = [&](const ThreadStep& step) {
    const NodeId node = step.is_start ? StartNode(step.event) : EndNode(step.event);
    if (step.open == kNoEvent) {
      gaps_.push_back({lane, before, node});
      if (is_worker && before != kWindowStart) stretches_.push_back(stretch);
      stretch.start_ps = Time(node);
    } else if (!step.is_start && AddHostWaits(step.event, before)) {
      AddUntimed(before, node, EdgeType::kOperator);
    } else {
      AddTimed(before, node, EdgeType::kOperator,
               data_loads > 0 ? BoundBy::kDataLoading : BoundBy::kCpu, step.open);
    }
    if (traits_[graph_.events[step.event].name].loads_data) data_loads += step.is_start ? 1 : -1;
    if (lane == home_) home_nodes_.push_back(node);
    before = node;
    stretch.last = node;
    stretch.end_ps = Time(node);
  };
  result_.not_nested += WalkThread(graph_.events, events, visit);
  if (is_worker) stretches_.push_back(stretch);
  last_nodes_[lane] = before;
}

bool Builder::AddHostWaits(GraphEventId call, NodeId before) {
  const auto waits = waits_of_call_.find(call);
  if (waits == waits_of_call_.end()) return false;
  std::vector<NodeId> awaited;
  for (const DeviceDependency& dependency : waits->second) {
    const GraphEventId work = event_of_row_[dependency.from];
    if (!IsHostWait(dependency.kind) || work == kNoEvent) continue;
    // Waits within one moment could make a circle, and explain nothing.
    if (Time(StartNode(work)) < Time(EndNode(call))) awaited.push_back(EndNode(work));
  }
  std::sort(awaited.begin(), awaited.end());
  awaited.erase(std::unique(awaited.begin(), awaited.end()), awaited.end());
  const auto last = std::max_element(awaited.begin(), awaited.end(),
                                     [&](NodeId a, NodeId b) { return Time(a) < Time(b); });
  const bool has_waited = last != awaited.end() && Time(*last) > Time(before);
  for (auto node = awaited.begin(); node != awaited.end(); ++node) {
    if (has_waited && node == last) {
      AddTimed(*node, EndNode(call), EdgeType::kSyncDependency, BoundBy::kCpu, call);
    } else {
      AddUntimed(*node, EndNode(call), EdgeType::kSyncDependency);
    }
  }
  return has_waited;
}

void Builder::AddGaps() {
  std::stable_sort(stretches_.begin(), stretches_.end(), [&](const Stretch& a, const Stretch& b) {
    return std::tie(graph_.lanes[a.lane].process, a.end_ps) <
           std::tie(graph_.lanes[b.lane].process, b.end_ps);
  });
  for (const Gap& gap : gaps_) AddGap(gap);
}

NodeId Builder::FindStretchIn(const Gap& gap) const {
  const std::string& process = graph_.lanes[gap.lane].process;
  const int64_t begin_ps = Time(gap.before), end_ps = Time(gap.after);
  auto it = std::lower_bound(stretches_.begin(), stretches_.end(), end_ps,
                             [&](const Stretch& stretch, int64_t time_ps) {
                               return std::tie(graph_.lanes[stretch.lane].process, stretch.end_ps) <
                                      std::tie(process, time_ps);
                             });
  // One that ends before the gap does, so that no two threads wait for each other.
  for (int i = 0; i < kMaxCandidates && it != stretches_.begin(); ++i) {
    --it;
    if (graph_.lanes[it->lane].process != process || it->end_ps <= begin_ps) break;
    if (it->lane != gap.lane && it->start_ps >= begin_ps) return it->last;
  }
  return kNoNode;
}

NodeId Builder::FindHomeNodeIn(const Gap& gap) const {
  if (home_ == kNoLane || graph_.lanes[home_].process != graph_.lanes[gap.lane].process) {
    return kNoNode;
  }
  const auto it =
      std::lower_bound(home_nodes_.begin(), home_nodes_.end(), Time(gap.after),
                       [&](NodeId node, int64_t time_ps) { return Time(node) < time_ps; });
  if (it == home_nodes_.begin() || Time(*std::prev(it)) <= Time(gap.before)) return kNoNode;
  return *std::prev(it);
}

NodeId Builder::FindAwaited(const Gap& gap) const {
  if (graph_.lanes[gap.lane].kind != TrackKind::kHost) return kNoNode;
  const NodeId at_home = gap.lane == home_ ? kNoNode : FindHomeNodeIn(gap);
  return at_home != kNoNode ? at_home : FindStretchIn(gap);
}

NodeId Builder::AddGap(const Gap& gap) {
  const NodeId awaited = FindAwaited(gap);
  if (awaited == kNoNode) {
    AddTimed(gap.before, gap.after, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent);
  } else {
    AddUntimed(gap.before, gap.after, EdgeType::kDependency);
    AddTimed(awaited, gap.after, EdgeType::kDependency, BoundBy::kHostGap, kNoEvent);
  }
  return awaited;
}

NodeId Builder::LatestNode(TrackKind kind) const {
  NodeId latest = kNoNode;
  for (LaneId lane = 0; lane < last_nodes_.size(); ++lane) {
    if (graph_.lanes[lane].kind != kind) continue;
    if (latest == kNoNode || Time(last_nodes_[lane]) > Time(latest)) latest = last_nodes_[lane];
  }
  return latest;
}

NodeId Builder::LastNode() const {
  // The work that the window launched outlasts it, or the track that ends it has the last word.
  if (graph_.window_end_ps > window_.end_ps) return LatestNode(TrackKind::kDevice);
  const LaneId lane = lane_of_track_[window_.end_track];
  if (lane != kNoLane) return last_nodes_[lane];
  const NodeId on_host = LatestNode(TrackKind::kHost);
  return on_host != kNoNode ? on_host : LatestNode(TrackKind::kDevice);
}

void Builder::AddWindowEnd() {
  const NodeId end = *graph_.end_node, last = LastNode();
  NodeId awaited = kNoNode;
  if (Time(last) == Time(end)) {
    AddUntimed(last, end, EdgeType::kDependency);
  } else {
    // The annotation ends: its thread comes back then, so to speak.
    awaited = AddGap({graph_.events[graph_.nodes[last].event].lane, last, end});
  }
  for (NodeId node : last_nodes_) {
    if (node != last && node != awaited) AddUntimed(node, end, EdgeType::kDependency);
  }
}

}  // namespace

absl::StatusOr<TraceGraph> BuildTraceGraph(const EventTable& table,
                                           absl::Span<const uint32_t> positions,
                                           const DeviceDependencies& dependencies,
                                           const TraceWindow& window,
                                           const TraceGraphOptions& options) {
  return Builder(table, positions, dependencies, window, options).Build();
}

}  // namespace meridian
