#include "critical_path/what_if/schedule_compaction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace meridian {
namespace {

// Meetings are told by the name of one of those who come: of one that still does.
void RenameMeetings(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  for (const GraphEdge& edge : graph.edges) {
    const GraphEventId met = graph.nodes[edge.to].event;
    if (met == kNoEvent || schedule->start_nodes[met] != kNoNode) continue;
    if (schedule->IsOfEvent(edge.from)) graph.nodes[edge.to].event = graph.nodes[edge.from].event;
  }
}

// Returns new numbers for those that are kept.
std::vector<uint32_t> Renumber(const std::vector<bool>& is_kept, uint32_t none) {
  std::vector<uint32_t> numbers(is_kept.size(), none);
  uint32_t next = 0;
  for (size_t i = 0; i < is_kept.size(); ++i) {
    if (is_kept[i]) numbers[i] = next++;
  }
  return numbers;
}

template <typename T>
void Keep(const std::vector<bool>& is_kept, std::vector<T>* values) {
  size_t next = 0;
  for (size_t i = 0; i < is_kept.size(); ++i) {
    if (is_kept[i]) (*values)[next++] = std::move((*values)[i]);
  }
  values->resize(next);
}

}  // namespace

void DropRemoved(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  RenameMeetings(schedule);
  std::vector<bool> keeps_event(graph.events.size()), keeps_node(graph.nodes.size());
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    keeps_event[id] = schedule->start_nodes[id] != kNoNode;
  }
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const GraphEventId event = graph.nodes[id].event;
    keeps_node[id] = event == kNoEvent || keeps_event[event];
  }
  // Whatever is still used stays, too.
  for (const GraphEdge& edge : graph.edges) {
    keeps_node[edge.from] = keeps_node[edge.to] = true;
    for (GraphEventId event :
         {edge.event, graph.nodes[edge.from].event, graph.nodes[edge.to].event}) {
      if (event != kNoEvent) keeps_event[event] = true;
    }
  }
  const std::vector<uint32_t> events = Renumber(keeps_event, kNoEvent);
  const std::vector<uint32_t> nodes = Renumber(keeps_node, kNoNode);
  const auto event_of = [&](GraphEventId id) { return id == kNoEvent ? kNoEvent : events[id]; };

  Keep(keeps_event, &graph.events);
  Keep(keeps_event, &schedule->start_nodes);
  Keep(keeps_event, &schedule->end_nodes);
  const auto node_of = [&](NodeId id) { return id == kNoNode ? kNoNode : nodes[id]; };
  for (NodeId& node : schedule->start_nodes) node = node_of(node);
  for (NodeId& node : schedule->end_nodes) node = node_of(node);
  Keep(keeps_node, &graph.nodes);
  for (GraphNode& node : graph.nodes) node.event = event_of(node.event);
  for (std::vector<NodeId>& order : schedule->lane_order) {
    for (NodeId& node : order) node = nodes[node];
  }
  graph.meetings.erase(
      std::remove_if(graph.meetings.begin(), graph.meetings.end(),
                     [&](const GraphMeeting& meeting) { return !keeps_node[meeting.node]; }),
      graph.meetings.end());
  for (GraphMeeting& meeting : graph.meetings) meeting.node = nodes[meeting.node];
  if (graph.end_node.has_value()) graph.end_node = nodes[*graph.end_node];
  for (GraphEdge& edge : graph.edges) {
    edge.from = nodes[edge.from];
    edge.to = nodes[edge.to];
    edge.event = event_of(edge.event);
  }
}

}  // namespace meridian
