#include "critical_path/what_if/structure_edits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "critical_path/what_if/lane_links.h"
#include "critical_path/what_if/saturating_sum.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Of all edits together: each may double the events.
constexpr size_t kMaxAddedEvents = 1'000'000;

std::string DescribeEvent(const Schedule& schedule, GraphEventId id) {
  return absl::StrCat("'", Printable(schedule.graph.EventName(id)), "' (event ",
                      schedule.graph.events[id].position, ")");
}

// An edge from the end of an event to the start of one that waits for it.
GraphEdge WaitEdge(const Schedule& schedule, GraphEventId from, GraphEventId to, int64_t delay_ps) {
  GraphEdge edge{schedule.end_nodes[from], schedule.start_nodes[to], delay_ps, kNoEvent,
                 EdgeType::kDependency,    BoundBy::kHostGap};
  if (schedule.IsOnDevice(to)) {
    edge.event = to;
    edge.type = EdgeType::kSyncDependency;
    edge.bound_by = BoundBy::kKernelKernelOverhead;
  }
  return edge;
}

// Where an event's nodes, and all between them, stand on their lane.
struct Run {
  size_t begin = 0;
  size_t end = 0;
};

using Places = absl::flat_hash_map<NodeId, size_t>;

// Returns the run of an event, all of whose nodes belong to whole events.
absl::StatusOr<Run> FindRun(const Schedule& schedule, const Places& places, GraphEventId event) {
  const std::vector<NodeId>& order = schedule.lane_order[schedule.LaneOf(event)];
  const Run run = {places.at(schedule.start_nodes[event]),
                   places.at(schedule.end_nodes[event]) + 1};
  absl::flat_hash_set<GraphEventId> open;
  for (size_t i = run.begin; i < run.end; ++i) {
    const GraphNode& node = schedule.graph.nodes[order[i]];
    const bool is_whole =
        node.is_start ? open.insert(node.event).second : open.erase(node.event) > 0;
    if (!is_whole) open.insert(kNoEvent);
  }
  if (run.end <= run.begin || !open.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(DescribeEvent(schedule, event),
                     " overlaps with others on its thread or stream and cannot be moved"));
  }
  return run;
}

absl::Status NotTogether(const Schedule& schedule, GraphEventId a, GraphEventId b) {
  return absl::InvalidArgumentError(
      absl::StrCat(DescribeEvent(schedule, a), " and ", DescribeEvent(schedule, b),
                   " are not on the same thread or stream, and within the same event"));
}

}  // namespace

absl::Status AddEvents(absl::string_view name, int64_t duration_ps, const Selection& selection,
                       Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const std::vector<GraphEventId> anchors = selection.ToVector();
  const size_t added_before = graph.events.size() - schedule->measured_events;
  if (added_before + anchors.size() > kMaxAddedEvents) {
    return absl::OutOfRangeError(absl::StrCat("this adds ", anchors.size(), " events; at most ",
                                              kMaxAddedEvents - added_before, " can be added"));
  }
  uint32_t position = 0;
  for (const GraphEvent& event : graph.events) position = std::max(position, event.position);
  const NameId name_id = graph.names.Intern(name);
  // By the end of the event before; the new event's nodes.
  struct Added {
    NodeId start;
    NodeId end;
  };
  absl::flat_hash_map<NodeId, Added> added;
  std::vector<GraphEdge> new_edges;
  for (GraphEventId anchor : anchors) {
    const NodeId before = schedule->end_nodes[anchor];
    if (before == kNoNode) continue;
    const bool is_device = schedule->IsOnDevice(anchor);
    const auto id = static_cast<GraphEventId>(graph.events.size());
    GraphEvent event = graph.events[anchor];
    event.name = name_id;
    event.start_ps = graph.nodes[before].time_ps;
    event.duration_ps = duration_ps;
    event.position = ++position;
    graph.events.push_back(event);
    const auto start = static_cast<NodeId>(graph.nodes.size());
    const NodeId end = start + 1;
    graph.nodes.push_back({event.start_ps, id, /*is_start=*/true});
    graph.nodes.push_back({SaturatingSum(event.start_ps, duration_ps), id, /*is_start=*/false});
    schedule->start_nodes.push_back(start);
    schedule->end_nodes.push_back(end);
    added[before] = {start, end};
    new_edges.push_back({before, start, 0, kNoEvent,
                         is_device ? EdgeType::kKernelKernelDelay : EdgeType::kDependency,
                         BoundBy::kNothing});
    new_edges.push_back({start, end, duration_ps, id, EdgeType::kOperator,
                         is_device ? BoundBy::kGpuCompute : BoundBy::kCpu});
  }
  for (GraphEdge& edge : graph.edges) {
    const auto it = added.find(edge.from);
    if (it != added.end()) edge.from = it->second.end;
  }
  graph.edges.insert(graph.edges.end(), new_edges.begin(), new_edges.end());
  for (std::vector<NodeId>& nodes : schedule->lane_order) {
    std::vector<NodeId> order;
    for (NodeId node : nodes) {
      order.push_back(node);
      const auto it = added.find(node);
      if (it != added.end()) order.insert(order.end(), {it->second.start, it->second.end});
    }
    nodes = std::move(order);
  }
  TidyEdges(schedule);
  return absl::OkStatus();
}

void LinkEvents(GraphEventId from, GraphEventId to, int64_t delay_ps, Schedule* schedule) {
  schedule->graph.edges.push_back(WaitEdge(*schedule, from, to, delay_ps));
  TidyEdges(schedule);
}

absl::StatusOr<int64_t> UnlinkEvents(const Selection& from, const Selection& to,
                                     Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const auto is_meant = [&](const GraphEdge& edge) {
    if (!schedule->IsOfEvent(edge.from) || !schedule->IsOfEvent(edge.to)) return false;
    const GraphEventId tail = graph.nodes[edge.from].event, head = graph.nodes[edge.to].event;
    return schedule->LaneOf(tail) != schedule->LaneOf(head) && from.events[tail] && to.events[head];
  };
  const auto kept = std::remove_if(graph.edges.begin(), graph.edges.end(), is_meant);
  const int64_t count = graph.edges.end() - kept;
  graph.edges.erase(kept, graph.edges.end());
  if (count == 0) {
    return absl::InvalidArgumentError(
        "no such event waits for another of these; the order of a thread or stream is changed by "
        "'move' and 'overlap'");
  }
  return count;
}

absl::Status MoveEvents(const EventIndex& index, const std::vector<GraphEventId>& events,
                        GraphEventId target, bool before, Schedule* schedule) {
  for (GraphEventId event : events) {
    const bool is_within_same = schedule->IsOnDevice(target) || schedule->IsOnDevice(event) ||
                                index.Parent(event) == index.Parent(target);
    if (!is_within_same) return NotTogether(*schedule, event, target);
  }
  return MoveOnLane(events, target, before, schedule);
}

absl::Status MoveOnLane(const std::vector<GraphEventId>& events, GraphEventId target, bool before,
                        Schedule* schedule) {
  const LaneId lane = schedule->LaneOf(target);
  const std::vector<NodeId>& order = schedule->lane_order[lane];
  Places places;
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  ASSIGN_OR_RETURN(const Run target_run, FindRun(*schedule, places, target));
  std::vector<bool> is_moved(order.size());
  for (GraphEventId event : events) {
    if (schedule->LaneOf(event) != lane) return NotTogether(*schedule, event, target);
    ASSIGN_OR_RETURN(const Run run, FindRun(*schedule, places, event));
    // Also one within the other.
    if (run.begin < target_run.end && target_run.begin < run.end) {
      return absl::InvalidArgumentError(
          absl::StrCat(DescribeEvent(*schedule, event), " cannot be moved before or after itself"));
    }
    std::fill(is_moved.begin() + run.begin, is_moved.begin() + run.end, true);
  }
  const size_t place = before ? target_run.begin : target_run.end;
  std::vector<NodeId> moved, new_order;
  for (size_t i = 0; i < order.size(); ++i) {
    if (is_moved[i]) moved.push_back(order[i]);
  }
  for (size_t i = 0; i <= order.size(); ++i) {
    if (i == place) new_order.insert(new_order.end(), moved.begin(), moved.end());
    if (i < order.size() && !is_moved[i]) new_order.push_back(order[i]);
  }
  ReorderLane(lane, std::move(new_order), schedule);
  TidyEdges(schedule);
  return absl::OkStatus();
}

namespace {

// Moves selected work of a stream to a new one.
void SeparateStream(LaneId lane, const Selection& selection, Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  std::vector<NodeId> leaving, staying;
  for (NodeId node : schedule->lane_order[lane]) {
    (selection.events[graph.nodes[node].event] ? leaving : staying).push_back(node);
  }
  if (leaving.empty() || staying.empty()) return;
  ReorderLane(lane, std::move(staying), schedule);
  const auto new_lane = static_cast<LaneId>(graph.lanes.size());
  Lane copy = graph.lanes[lane];
  absl::StrAppend(&copy.thread, " overlapped");
  graph.lanes.push_back(std::move(copy));
  schedule->lane_order.emplace_back();
  for (NodeId node : leaving) graph.events[graph.nodes[node].event].lane = new_lane;
  ReorderLane(new_lane, std::move(leaving), schedule);
}

// Lets the first of the awaiting events that starts after each selected one ends wait for it.
void AddLastMoments(const std::vector<GraphEventId>& selected, const Selection& until,
                    Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const auto rank_of = [&](GraphEventId id) { return graph.lanes[schedule->LaneOf(id)].rank; };
  std::vector<GraphEventId> awaiting;
  for (GraphEventId id : until.ToVector()) {
    if (schedule->start_nodes[id] != kNoNode) awaiting.push_back(id);
  }
  const auto key = [&](GraphEventId id) {
    return std::make_pair(rank_of(id), graph.events[id].start_ps);
  };
  std::stable_sort(awaiting.begin(), awaiting.end(),
                   [&](GraphEventId a, GraphEventId b) { return key(a) < key(b); });
  for (GraphEventId id : selected) {
    const auto end = std::make_pair(
        rank_of(id), SaturatingSum(graph.events[id].start_ps, graph.events[id].duration_ps));
    const auto next = std::lower_bound(awaiting.begin(), awaiting.end(), end,
                                       [&](GraphEventId a, const auto& k) { return key(a) < k; });
    if (next == awaiting.end() || rank_of(*next) != end.first) continue;
    graph.edges.push_back(WaitEdge(*schedule, id, *next, /*delay_ps=*/0));
  }
}

}  // namespace

absl::Status OverlapEvents(const Selection& selection, const Selection* until, Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const std::vector<GraphEventId> selected = selection.ToVector();
  for (GraphEventId id : selected) {
    if (!schedule->IsOnDevice(id)) {
      return absl::InvalidArgumentError(absl::StrCat(
          DescribeEvent(*schedule, id), " runs on the host; only device work can be overlapped"));
    }
  }
  const size_t lanes = graph.lanes.size();
  for (LaneId lane = 0; lane < lanes; ++lane) SeparateStream(lane, selection, schedule);
  const auto is_wait = [&](const GraphEdge& edge) {
    if (!schedule->IsOfEvent(edge.from) || !schedule->IsWorkStart(edge.to)) return false;
    return selection.events[graph.nodes[edge.from].event] &&
           !selection.events[graph.nodes[edge.to].event];
  };
  graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), is_wait),
                    graph.edges.end());
  if (until != nullptr) AddLastMoments(selected, *until, schedule);
  TidyEdges(schedule);
  return absl::OkStatus();
}

}  // namespace meridian
