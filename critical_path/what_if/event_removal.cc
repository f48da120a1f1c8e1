#include "critical_path/what_if/event_removal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "critical_path/what_if/structure_edits.h"

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
    if (schedule.start_instants[id] == kNoInstant) removed[id] = false;
  }
  return removed;
}

// What goes, and what takes its place.
struct Removal {
  // By event: whether it is removed.
  std::vector<bool> events;
  // By instant: whether it is of a removed event.
  std::vector<bool> instants;
  // By removed instant: the one before it on its lane that stays, which on a stream is the end of
  // work, and on a thread, before its first instant, the window's start; kNoInstant when there is
  // none.
  std::vector<InstantId> stand_ins;
  // By instant that follows removed ones on a thread: the time that leads into those, but is not
  // that of removed events.
  std::vector<int64_t> carried_ps;
};

Removal PlanRemoval(std::vector<bool> removed, const Schedule& schedule) {
  const PathGraph& graph = schedule.graph;
  const size_t count = graph.instants.size();
  Removal removal = {std::move(removed), std::vector<bool>(count),
                     std::vector<InstantId>(count, kNoInstant), std::vector<int64_t>(count)};
  for (InstantId instant = 0; instant < count; ++instant) {
    removal.instants[instant] =
        schedule.IsOfEvent(instant) && removal.events[graph.instants[instant].event];
  }
  // By instant that follows a window's start: that start. By removed instant of a thread: the time
  // that leads there and is kept.
  std::vector<InstantId> window_starts(count, kNoInstant);
  std::vector<int64_t> into_ps(count);
  for (const GraphEdge& edge : graph.edges) {
    const bool is_first = graph.instants[edge.from].event == kNoEvent;
    if (is_first) window_starts[edge.to] = edge.from;
    if (!removal.instants[edge.to]) continue;
    if (schedule.IsOnDevice(graph.instants[edge.to].event)) continue;
    const bool is_removed_time = edge.event != kNoEvent && removal.events[edge.event];
    if ((is_first || IsLaneEdge(schedule, edge)) && !is_removed_time) {
      into_ps[edge.to] = SaturatingSum(into_ps[edge.to], edge.weight_ps);
    }
  }
  for (LaneId lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::vector<InstantId>& instants = schedule.lane_order[lane];
    if (instants.empty()) continue;
    const bool is_device = graph.lanes[lane].kind == TrackKind::kDevice;
    InstantId stand_in = is_device ? kNoInstant : window_starts[instants.front()];
    int64_t carried_ps = 0;
    for (InstantId instant : instants) {
      if (removal.instants[instant]) {
        removal.stand_ins[instant] = stand_in;
        carried_ps = SaturatingSum(carried_ps, into_ps[instant]);
        continue;
      }
      if (!is_device || !graph.instants[instant].is_start) stand_in = instant;
      removal.carried_ps[instant] = std::exchange(carried_ps, 0);
    }
  }
  return removal;
}

void ReplaceEdges(const Removal& removal, Schedule* schedule) {
  std::vector<GraphEdge> edges;
  edges.reserve(schedule->graph.edges.size());
  for (GraphEdge edge : schedule->graph.edges) {
    if (removal.instants[edge.to]) continue;
    if (edge.event != kNoEvent && removal.events[edge.event]) {
      // Events that overlap without nesting: this moment is that of the removed one.
      edge.weight_ps = 0;
      edge.event = kNoEvent;
      edge.bound_by = BoundBy::kNothing;
    }
    if (removal.instants[edge.from]) {
      // Ranks that meet do not wait for one that does not come.
      const InstantId stand_in = removal.stand_ins[edge.from];
      if (schedule->IsMeeting(edge.to) || stand_in == kNoInstant) continue;
      if (IsLaneEdge(*schedule, edge)) {
        edge.weight_ps = SaturatingSum(edge.weight_ps, removal.carried_ps[edge.to]);
      }
      edge.from = stand_in;
    }
    edges.push_back(edge);
  }
  schedule->graph.edges = std::move(edges);
}

// Removes the edges out of meetings to which nobody comes any more.
void CancelMeetings(Schedule* schedule) {
  std::vector<GraphEdge>& edges = schedule->graph.edges;
  std::vector<bool> is_awaiting(schedule->graph.instants.size());
  for (const GraphEdge& edge : edges) is_awaiting[edge.to] = true;
  const auto is_cancelled = [&](const GraphEdge& edge) {
    return schedule->IsMeeting(edge.from) && !is_awaiting[edge.from];
  };
  edges.erase(std::remove_if(edges.begin(), edges.end(), is_cancelled), edges.end());
}

// Lets each meeting name the event of a rank that still comes, where that of its last one was
// removed.
void RenameMeetings(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  for (const GraphEdge& edge : graph.edges) {
    const GraphEventId met = graph.instants[edge.to].event;
    if (met == kNoEvent || schedule->start_instants[met] != kNoInstant) continue;
    if (schedule->IsOfEvent(edge.from))
      graph.instants[edge.to].event = graph.instants[edge.from].event;
  }
}

// Returns the new numbers of those that are kept, and `none` for the others.
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

absl::StatusOr<int64_t> RemoveEvents(const EventIndex& index, const Selection& selection,
                                     Schedule* schedule) {
  std::vector<bool> removed = WithDescendants(index, *schedule, selection);
  const int64_t count = std::count(removed.begin(), removed.end(), true);
  const std::vector<InstantId>& starts = schedule->start_instants;
  const int64_t without_instants = std::count(starts.begin(), starts.end(), kNoInstant);
  if (count + without_instants == static_cast<int64_t>(starts.size())) {
    return absl::InvalidArgumentError(
        "this removes every event; nothing would be left to be scheduled");
  }
  const Removal removal = PlanRemoval(std::move(removed), *schedule);
  ReplaceEdges(removal, schedule);
  CancelMeetings(schedule);
  for (std::vector<InstantId>& instants : schedule->lane_order) {
    instants.erase(std::remove_if(instants.begin(), instants.end(),
                                  [&](InstantId instant) { return removal.instants[instant]; }),
                   instants.end());
  }
  for (GraphEventId id = 0; id < removal.events.size(); ++id) {
    if (removal.events[id]) schedule->start_instants[id] = schedule->end_instants[id] = kNoInstant;
  }
  TidyEdges(schedule);
  return count;
}

void DropRemoved(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  RenameMeetings(schedule);
  std::vector<bool> keeps_event(graph.events.size()), keeps_instant(graph.instants.size());
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    keeps_event[id] = schedule->start_instants[id] != kNoInstant;
  }
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    const GraphEventId event = graph.instants[id].event;
    keeps_instant[id] = event == kNoEvent || keeps_event[event];
  }
  // Instants that have edges stay, too, and the events that edges and instants name.
  for (const GraphEdge& edge : graph.edges) {
    keeps_instant[edge.from] = keeps_instant[edge.to] = true;
    for (GraphEventId event :
         {edge.event, graph.instants[edge.from].event, graph.instants[edge.to].event}) {
      if (event != kNoEvent) keeps_event[event] = true;
    }
  }
  const std::vector<uint32_t> events = Renumber(keeps_event, kNoEvent);
  const std::vector<uint32_t> instants = Renumber(keeps_instant, kNoInstant);
  const auto event_of = [&](GraphEventId id) { return id == kNoEvent ? kNoEvent : events[id]; };

  Keep(keeps_event, &graph.events);
  Keep(keeps_event, &schedule->start_instants);
  Keep(keeps_event, &schedule->end_instants);
  const auto instant_of = [&](InstantId id) {
    return id == kNoInstant ? kNoInstant : instants[id];
  };
  for (std::vector<InstantId>* ends : {&schedule->start_instants, &schedule->end_instants}) {
    for (InstantId& instant : *ends) instant = instant_of(instant);
  }
  Keep(keeps_instant, &graph.instants);
  for (Instant& instant : graph.instants) instant.event = event_of(instant.event);
  for (std::vector<InstantId>& order : schedule->lane_order) {
    for (InstantId& instant : order) instant = instants[instant];
  }
  graph.meetings.erase(
      std::remove_if(graph.meetings.begin(), graph.meetings.end(),
                     [&](const GraphMeeting& meeting) { return !keeps_instant[meeting.instant]; }),
      graph.meetings.end());
  for (GraphMeeting& meeting : graph.meetings) meeting.instant = instants[meeting.instant];
  if (graph.end_instant.has_value()) graph.end_instant = instants[*graph.end_instant];
  for (GraphEdge& edge : graph.edges) {
    edge.from = instants[edge.from];
    edge.to = instants[edge.to];
    edge.event = event_of(edge.event);
  }
}

}  // namespace meridian
