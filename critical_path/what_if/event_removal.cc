#include "critical_path/what_if/event_removal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "critical_path/what_if/lane_links.h"

namespace meridian {
namespace {

// Adds what runs within, or was launched by, an event to be removed.
std::vector<bool> WithDescendants(const EventIndex& index, const Schedule& schedule,
                                  const Selection& selection) {
  std::vector<bool> removed = selection.events;
  for (GraphEventId id = 0; id < removed.size(); ++id) {
    for (GraphEventId around = index.Parent(id); around != kNoEvent && !removed[id];
         around = index.Parent(around)) {
      removed[id] = selection.events[around];
    }
    if (schedule.start_nodes[id] == kNoNode) removed[id] = false;
  }
  return removed;
}

class Remover {
 public:
  Remover(std::vector<bool> removed, Schedule* schedule)
      : removed_(std::move(removed)),
        schedule_(*schedule),
        graph_(schedule->graph),
        is_removed_(graph_.nodes.size()),
        stand_ins_(graph_.nodes.size(), kNoNode) {}

  void Remove() {
    for (NodeId node = 0; node < graph_.nodes.size(); ++node) {
      is_removed_[node] = schedule_.IsOfEvent(node) && removed_[graph_.nodes[node].event];
    }
    for (const GraphEdge& edge : graph_.edges) {
      if (graph_.nodes[edge.from].event == kNoEvent) window_starts_[edge.to] = edge.from;
    }
    for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) FindStandIns(lane);
    CarryThreadTime();
    ReplaceEdges();
    CancelMeetings();
    for (std::vector<NodeId>& nodes : schedule_.lane_order) {
      nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                                 [&](NodeId node) { return is_removed_[node]; }),
                  nodes.end());
    }
    for (GraphEventId id = 0; id < removed_.size(); ++id) {
      if (removed_[id]) schedule_.start_nodes[id] = schedule_.end_nodes[id] = kNoNode;
    }
    TidyEdges(&schedule_);
  }

 private:
  bool IsOnThread(NodeId node) const {
    return schedule_.IsOfEvent(node) && !schedule_.IsOnDevice(graph_.nodes[node].event);
  }

  // The node before each removed one on its lane that stays: on a stream the end of work. Before
  // the first of a thread it is the window's start.
  void FindStandIns(LaneId lane) {
    const std::vector<NodeId>& nodes = schedule_.lane_order[lane];
    if (nodes.empty()) return;
    const bool is_device = graph_.lanes[lane].kind == TrackKind::kDevice;
    const auto window_start = window_starts_.find(nodes.front());
    NodeId stand_in =
        is_device || window_start == window_starts_.end() ? kNoNode : window_start->second;
    for (NodeId node : nodes) {
      if (is_removed_[node]) {
        stand_ins_[node] = stand_in;
      } else if (!is_device || !graph_.nodes[node].is_start) {
        stand_in = node;
      }
    }
  }

  // The time on a thread that leads into removed nodes and is not theirs: it is kept for the node
  // that follows.
  void CarryThreadTime() {
    absl::flat_hash_map<NodeId, int64_t> into;
    for (const GraphEdge& edge : graph_.edges) {
      if (!is_removed_[edge.to] || !IsOnThread(edge.to)) continue;
      const bool is_thread_edge =
          IsLaneEdge(schedule_, edge) || graph_.nodes[edge.from].event == kNoEvent;
      const bool is_removed_time = edge.event != kNoEvent && removed_[edge.event];
      if (is_thread_edge && !is_removed_time) into[edge.to] += edge.weight_ps;
    }
    for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (graph_.lanes[lane].kind == TrackKind::kDevice) continue;
      int64_t carried_ps = 0;
      for (NodeId node : schedule_.lane_order[lane]) {
        if (is_removed_[node]) {
          const auto it = into.find(node);
          if (it != into.end()) carried_ps += it->second;
        } else if (carried_ps > 0) {
          carried_ps_[node] = std::exchange(carried_ps, 0);
        }
      }
    }
  }

  void ReplaceEdges() {
    std::vector<GraphEdge> edges;
    edges.reserve(graph_.edges.size());
    for (GraphEdge edge : graph_.edges) {
      if (is_removed_[edge.to]) continue;
      if (edge.event != kNoEvent && removed_[edge.event]) {
        // Events that overlap without nesting: this moment is that of the removed one.
        edge.weight_ps = 0;
        edge.event = kNoEvent;
        edge.bound_by = BoundBy::kNothing;
      }
      if (is_removed_[edge.from]) {
        // Ranks that meet do not wait for one that does not come.
        const bool is_meeting =
            graph_.nodes[edge.to].event != kNoEvent && !schedule_.IsOfEvent(edge.to);
        const NodeId stand_in = stand_ins_[edge.from];
        if (is_meeting || stand_in == kNoNode) continue;
        const auto carried = carried_ps_.find(edge.to);
        if (carried != carried_ps_.end() && IsLaneEdge(schedule_, edge)) {
          edge.weight_ps += carried->second;
        }
        edge.from = stand_in;
      }
      edges.push_back(edge);
    }
    graph_.edges = std::move(edges);
  }

  // Nobody leaves a meeting to which nobody comes.
  void CancelMeetings() {
    std::vector<bool> is_awaiting(graph_.nodes.size());
    for (const GraphEdge& edge : graph_.edges) is_awaiting[edge.to] = true;
    const auto is_cancelled = [&](const GraphEdge& edge) {
      const bool is_meeting =
          graph_.nodes[edge.from].event != kNoEvent && !schedule_.IsOfEvent(edge.from);
      return is_meeting && !is_awaiting[edge.from];
    };
    graph_.edges.erase(std::remove_if(graph_.edges.begin(), graph_.edges.end(), is_cancelled),
                       graph_.edges.end());
  }

  const std::vector<bool> removed_;
  Schedule& schedule_;
  PathGraph& graph_;
  std::vector<bool> is_removed_;
  // By node that waits for a window's start.
  absl::flat_hash_map<NodeId, NodeId> window_starts_;
  // By removed node.
  std::vector<NodeId> stand_ins_;
  // By the node that follows removed ones.
  absl::flat_hash_map<NodeId, int64_t> carried_ps_;
};

}  // namespace

absl::StatusOr<int64_t> RemoveEvents(const EventIndex& index, const Selection& selection,
                                     Schedule* schedule) {
  std::vector<bool> removed = WithDescendants(index, *schedule, selection);
  const int64_t count = std::count(removed.begin(), removed.end(), true);
  int64_t there = 0;
  for (NodeId node : schedule->start_nodes) there += node != kNoNode ? 1 : 0;
  if (count == there) {
    return absl::InvalidArgumentError(
        "this removes every event; nothing would be left to be scheduled");
  }
  Remover(std::move(removed), schedule).Remove();
  return count;
}

}  // namespace meridian
