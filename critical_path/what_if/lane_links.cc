#include "critical_path/what_if/lane_links.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace meridian {
namespace {

using Predecessors = absl::flat_hash_map<NodeId, NodeId>;

// Returns what each node of a lane follows on it: on a stream starts follow the last end.
Predecessors FindPredecessors(const Schedule& schedule, bool is_device,
                              const std::vector<NodeId>& order) {
  Predecessors predecessors;
  NodeId before = kNoNode;
  for (NodeId node : order) {
    const bool is_start = schedule.graph.nodes[node].is_start;
    if (!is_device || is_start) predecessors[node] = before;
    if (!is_device || !is_start) before = node;
  }
  return predecessors;
}

GraphEdge DefaultLaneEdge(const Schedule& schedule, bool is_device, NodeId node) {
  GraphEdge edge;
  edge.to = node;
  edge.type = is_device ? EdgeType::kKernelKernelDelay : EdgeType::kDependency;
  edge.bound_by = is_device ? BoundBy::kKernelKernelOverhead : BoundBy::kHostGap;
  if (is_device) edge.event = schedule.graph.nodes[node].event;
  return edge;
}

// For each end of a stream's work, which of the work until then comes last in the new order, of
// that which stays on the stream and of that which leaves it.
struct LastUntil {
  NodeId staying = kNoNode;
  NodeId leaving = kNoNode;
};

absl::flat_hash_map<NodeId, LastUntil> FindLastUntil(const std::vector<NodeId>& old_order,
                                                     const std::vector<NodeId>& order) {
  absl::flat_hash_map<NodeId, size_t> places;
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  absl::flat_hash_map<NodeId, LastUntil> result;
  LastUntil last;
  for (NodeId node : old_order) {
    if (!places.contains(node)) {
      last.leaving = node;
    } else if (last.staying == kNoNode || places[node] > places[last.staying]) {
      last.staying = node;
    }
    result[node] = last;
  }
  return result;
}

// A call of the host that waited for a stream's work waited for all before it, too.
void KeepHostWaits(const std::vector<NodeId>& old_order, const std::vector<NodeId>& order,
                   Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const absl::flat_hash_map<NodeId, LastUntil> last_until = FindLastUntil(old_order, order);
  std::vector<GraphEdge> more;
  for (GraphEdge& edge : graph.edges) {
    const auto it = last_until.find(edge.from);
    const bool is_host_wait = it != last_until.end() && !graph.nodes[edge.from].is_start &&
                              schedule->IsOfEvent(edge.to) &&
                              !schedule->IsOnDevice(graph.nodes[edge.to].event);
    if (!is_host_wait) continue;
    const auto [staying, leaving] = it->second;
    edge.from = staying != kNoNode ? staying : leaving;
    if (staying == kNoNode || leaving == kNoNode) continue;
    more.push_back(edge);
    more.back().from = leaving;
  }
  graph.edges.insert(graph.edges.end(), more.begin(), more.end());
}

}  // namespace

bool IsLaneEdge(const Schedule& schedule, const GraphEdge& edge) {
  if (!schedule.IsOfEvent(edge.from) || !schedule.IsOfEvent(edge.to)) return false;
  const GraphEventId from = schedule.graph.nodes[edge.from].event;
  const GraphEventId to = schedule.graph.nodes[edge.to].event;
  return schedule.LaneOf(from) == schedule.LaneOf(to) && (from != to || !schedule.IsOnDevice(to));
}

void ReorderLane(LaneId lane, std::vector<NodeId> order, Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const bool is_device = graph.lanes[lane].kind == TrackKind::kDevice;
  const std::vector<NodeId>& old_order = schedule->lane_order[lane];
  if (is_device) KeepHostWaits(old_order, order, schedule);
  const Predecessors before = FindPredecessors(*schedule, is_device, old_order);
  const Predecessors after = FindPredecessors(*schedule, is_device, order);
  // The edges from predecessors that are no more; of each node the longest.
  absl::flat_hash_map<NodeId, std::optional<GraphEdge>> relinked;
  for (const auto& [node, predecessor] : after) {
    const auto it = before.find(node);
    if (it == before.end() || it->second != predecessor) relinked[node] = std::nullopt;
  }
  const NodeId old_first = old_order.empty() ? kNoNode : old_order.front();
  const NodeId new_first = order.empty() ? kNoNode : order.front();
  const auto is_outdated = [&](GraphEdge& edge) {
    if (!is_device && edge.to == old_first && graph.nodes[edge.from].event == kNoEvent) {
      if (new_first != kNoNode) edge.to = new_first;
      return new_first == kNoNode;
    }
    const auto it = relinked.find(edge.to);
    if (it == relinked.end() || !IsLaneEdge(*schedule, edge)) return false;
    if (!it->second.has_value() || edge.weight_ps > it->second->weight_ps) it->second = edge;
    return true;
  };
  graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), is_outdated),
                    graph.edges.end());
  // What was first has had no time before it; it gets that of what is first now.
  if (relinked.contains(old_first) && relinked.contains(new_first)) {
    std::swap(relinked[old_first], relinked[new_first]);
  }
  for (NodeId node : order) {
    const auto it = relinked.find(node);
    if (it == relinked.end() || after.at(node) == kNoNode) continue;
    GraphEdge edge = it->second.value_or(DefaultLaneEdge(*schedule, is_device, node));
    edge.from = after.at(node);
    edge.to = node;
    if (is_device) edge.event = graph.nodes[node].event;
    graph.edges.push_back(edge);
  }
  schedule->lane_order[lane] = std::move(order);
}

void TidyEdges(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  absl::flat_hash_map<std::pair<NodeId, NodeId>, size_t> places;
  std::vector<GraphEdge> edges;
  edges.reserve(graph.edges.size());
  for (const GraphEdge& edge : graph.edges) {
    const auto [it, is_new] = places.try_emplace({edge.from, edge.to}, edges.size());
    if (is_new) {
      edges.push_back(edge);
    } else if (edge.weight_ps > edges[it->second].weight_ps) {
      edges[it->second] = edge;
    }
  }
  graph.edges = std::move(edges);
  if (!graph.end_node.has_value()) return;
  for (const std::vector<NodeId>& nodes : schedule->lane_order) {
    if (nodes.empty() || places.contains({nodes.back(), *graph.end_node})) continue;
    graph.edges.push_back(
        {nodes.back(), *graph.end_node, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing});
  }
}

}  // namespace meridian
