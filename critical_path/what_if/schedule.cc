#include "critical_path/what_if/schedule.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "critical_path/edge_index.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// An edge that shows no time of its own.
bool IsHidden(const GraphEdge& edge) { return edge.bound_by == BoundBy::kNothing; }

void FindEventNodes(Schedule* schedule) {
  const PathGraph& graph = schedule->graph;
  schedule->start_nodes.assign(graph.events.size(), kNoNode);
  schedule->end_nodes.assign(graph.events.size(), kNoNode);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphNode& node = graph.nodes[id];
    if (node.event == kNoEvent) continue;
    // An event's own nodes come before others that are told by its name.
    NodeId& own = (node.is_start ? schedule->start_nodes : schedule->end_nodes)[node.event];
    if (own == kNoNode) own = id;
  }
  for (GraphEventId event = 0; event < graph.events.size(); ++event) {
    NodeId &start = schedule->start_nodes[event], &end = schedule->end_nodes[event];
    if (start == kNoNode || end == kNoNode) start = end = kNoNode;
  }
}

void PutPathFirst(const CriticalPath& path, std::vector<GraphEdge>* edges) {
  std::vector<bool> is_on_path(edges->size());
  std::vector<GraphEdge> ordered;
  ordered.reserve(edges->size());
  for (EdgeId id : path.edges) {
    is_on_path[id] = true;
    ordered.push_back((*edges)[id]);
  }
  for (EdgeId id = 0; id < edges->size(); ++id) {
    if (!is_on_path[id]) ordered.push_back((*edges)[id]);
  }
  *edges = std::move(ordered);
}

// Returns for each node its place in an order that all edges follow.
std::vector<uint32_t> TopologicalRanks(const PathGraph& graph) {
  const EdgeIndex outgoing(graph, &GraphEdge::from);
  std::vector<uint32_t> missing(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) ++missing[edge.to];
  std::vector<NodeId> sorted;
  sorted.reserve(graph.nodes.size());
  for (NodeId node = 0; node < graph.nodes.size(); ++node) {
    if (missing[node] == 0) sorted.push_back(node);
  }
  std::vector<uint32_t> ranks(graph.nodes.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    ranks[sorted[i]] = static_cast<uint32_t>(i);
    for (EdgeId id : outgoing.Of(sorted[i])) {
      if (--missing[graph.edges[id].to] == 0) sorted.push_back(graph.edges[id].to);
    }
  }
  return ranks;
}

void FindLaneOrder(Schedule* schedule) {
  const PathGraph& graph = schedule->graph;
  schedule->lane_order.assign(graph.lanes.size(), {});
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!schedule->IsOfEvent(id)) continue;
    schedule->lane_order[schedule->LaneOf(graph.nodes[id].event)].push_back(id);
  }
  const std::vector<uint32_t> ranks = TopologicalRanks(graph);
  for (std::vector<NodeId>& nodes : schedule->lane_order) {
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
      return std::make_tuple(graph.nodes[a].time_ps, ranks[a]) <
             std::make_tuple(graph.nodes[b].time_ps, ranks[b]);
    });
  }
}

// Streams run in order, also where nothing in the trace made that matter.
void AddMissingStreamOrder(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  absl::flat_hash_set<std::pair<NodeId, NodeId>> joined;
  for (const GraphEdge& edge : graph.edges) joined.emplace(edge.from, edge.to);
  for (LaneId lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != TrackKind::kDevice) continue;
    const std::vector<NodeId>& nodes = schedule->lane_order[lane];
    for (size_t i = 1; i < nodes.size(); ++i) {
      const bool follows = !graph.nodes[nodes[i - 1]].is_start && graph.nodes[nodes[i]].is_start;
      if (!follows || !joined.emplace(nodes[i - 1], nodes[i]).second) continue;
      graph.edges.push_back(
          {nodes[i - 1], nodes[i], 0, kNoEvent, EdgeType::kKernelKernelDelay, BoundBy::kNothing});
    }
  }
}

// The usual delays before device work, by stream and type.
class UsualDelays {
 public:
  explicit UsualDelays(const Schedule& schedule) : schedule_(schedule) {
    const PathGraph& graph = schedule.graph;
    std::vector<std::array<std::vector<int64_t>, kNumEdgeTypes>> seen(graph.lanes.size() + 1);
    for (const GraphEdge& edge : graph.edges) {
      // What the window cuts off is no delay.
      if (IsHidden(edge) || graph.nodes[edge.from].event == kNoEvent) continue;
      const std::optional<LaneId> lane = StreamOfStart(edge.to);
      if (!lane.has_value()) continue;
      seen[*lane][static_cast<int>(edge.type)].push_back(edge.weight_ps);
      seen.back()[static_cast<int>(edge.type)].push_back(edge.weight_ps);
    }
    usual_.resize(seen.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      for (int type = 0; type < kNumEdgeTypes; ++type) {
        usual_[i][type] = seen[i][type].empty() ? kUnknown : LowerMedian(std::move(seen[i][type]));
      }
    }
  }

  // Returns the lane when the node is the start of device work.
  std::optional<LaneId> StreamOfStart(NodeId id) const {
    return schedule_.IsWorkStart(id)
               ? std::make_optional(schedule_.LaneOf(schedule_.graph.nodes[id].event))
               : std::nullopt;
  }

  int64_t Of(LaneId stream, EdgeType type) const {
    const int64_t here_ps = usual_[stream][static_cast<int>(type)];
    const int64_t anywhere_ps = usual_.back()[static_cast<int>(type)];
    return here_ps != kUnknown ? here_ps : std::max<int64_t>(anywhere_ps, 0);
  }

 private:
  static constexpr int64_t kUnknown = -1;

  const Schedule& schedule_;
  // By lane, and for the whole graph at the end.
  std::vector<std::array<int64_t, kNumEdgeTypes>> usual_;
};

void FillInHiddenDelays(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const UsualDelays usual(*schedule);
  // For each node the edge that shows its delay.
  constexpr EdgeId kNone = std::numeric_limits<EdgeId>::max();
  std::vector<EdgeId> shown(graph.nodes.size(), kNone);
  for (EdgeId id = 0; id < graph.edges.size(); ++id) {
    if (!IsHidden(graph.edges[id])) shown[graph.edges[id].to] = id;
  }
  for (GraphEdge& edge : graph.edges) {
    const GraphNode& head = graph.nodes[edge.to];
    if (!IsHidden(edge) || head.event == kNoEvent) continue;
    const int64_t room_ps = std::max<int64_t>(head.time_ps - graph.nodes[edge.from].time_ps, 0);
    if (const std::optional<LaneId> stream = usual.StreamOfStart(edge.to)) {
      edge.weight_ps = std::min(room_ps, usual.Of(*stream, edge.type));
      edge.event = head.event;
      edge.bound_by = edge.type == EdgeType::kKernelLaunchDelay ? BoundBy::kKernelLaunchOverhead
                                                                : BoundBy::kKernelKernelOverhead;
    } else if (shown[edge.to] != kNone) {
      const GraphEdge& delay = graph.edges[shown[edge.to]];
      edge.weight_ps = std::min(room_ps, delay.weight_ps);
      edge.event = delay.event;
      edge.bound_by = delay.bound_by;
    }
  }
}

}  // namespace

bool Schedule::IsOfEvent(NodeId id) const {
  const GraphNode& node = graph.nodes[id];
  return node.event != kNoEvent && (node.is_start ? start_nodes : end_nodes)[node.event] == id;
}

bool Schedule::IsWorkStart(NodeId id) const {
  const GraphNode& node = graph.nodes[id];
  return node.is_start && IsOfEvent(id) && IsOnDevice(node.event);
}

Schedule BuildSchedule(const PathGraph& measured, const CriticalPath& path) {
  Schedule schedule = BuildHtaSchedule(measured, path);
  FindLaneOrder(&schedule);
  AddMissingStreamOrder(&schedule);
  FillInHiddenDelays(&schedule);
  return schedule;
}

Schedule BuildHtaSchedule(const PathGraph& measured, const CriticalPath& path) {
  Schedule schedule;
  schedule.graph = CopyGraph(measured);
  schedule.measured_events = measured.events.size();
  FindEventNodes(&schedule);
  PutPathFirst(path, &schedule.graph.edges);
  return schedule;
}

}  // namespace meridian
