#include "critical_path/what_if/event_removal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

class Remover {
 public:
  Remover(std::vector<bool> removed, Schedule* schedule)
      : removed_(std::move(removed)),
        schedule_(*schedule),
        graph_(schedule->graph),
        is_removed_(graph_.instants.size()),
        stand_ins_(graph_.instants.size(), kNoInstant) {}

  void Remove() {
    for (InstantId instant = 0; instant < graph_.instants.size(); ++instant) {
      is_removed_[instant] =
          schedule_.IsOfEvent(instant) && removed_[graph_.instants[instant].event];
    }
    for (const GraphEdge& edge : graph_.edges) {
      if (graph_.instants[edge.from].event == kNoEvent) window_starts_[edge.to] = edge.from;
    }
    for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) FindStandIns(lane);
    CarryThreadTime();
    ReplaceEdges();
    CancelMeetings();
    for (std::vector<InstantId>& instants : schedule_.lane_order) {
      instants.erase(std::remove_if(instants.begin(), instants.end(),
                                    [&](InstantId instant) { return is_removed_[instant]; }),
                     instants.end());
    }
    for (GraphEventId id = 0; id < removed_.size(); ++id) {
      if (removed_[id]) schedule_.start_instants[id] = schedule_.end_instants[id] = kNoInstant;
    }
    TidyEdges(&schedule_);
  }

 private:
  bool IsOnThread(InstantId instant) const {
    return schedule_.IsOfEvent(instant) && !schedule_.IsOnDevice(graph_.instants[instant].event);
  }

  // Finds for each removed instant the one before it on its lane that stays: on a stream the end of
  // work; on a thread, before its first instant, the window's start.
  void FindStandIns(LaneId lane) {
    const std::vector<InstantId>& instants = schedule_.lane_order[lane];
    if (instants.empty()) return;
    const bool is_device = graph_.lanes[lane].kind == TrackKind::kDevice;
    const auto window_start = window_starts_.find(instants.front());
    InstantId stand_in =
        is_device || window_start == window_starts_.end() ? kNoInstant : window_start->second;
    for (InstantId instant : instants) {
      if (is_removed_[instant]) {
        stand_ins_[instant] = stand_in;
      } else if (!is_device || !graph_.instants[instant].is_start) {
        stand_in = instant;
      }
    }
  }

  // Keeps the time on a thread that leads into removed instants, but is not that of removed events,
  // for the instant that follows.
  void CarryThreadTime() {
    absl::flat_hash_map<InstantId, int64_t> into;
    for (const GraphEdge& edge : graph_.edges) {
      if (!is_removed_[edge.to] || !IsOnThread(edge.to)) continue;
      const bool is_thread_edge =
          IsLaneEdge(schedule_, edge) || graph_.instants[edge.from].event == kNoEvent;
      const bool is_removed_time = edge.event != kNoEvent && removed_[edge.event];
      if (is_thread_edge && !is_removed_time)
        into[edge.to] = SaturatingSum(into[edge.to], edge.weight_ps);
    }
    for (LaneId lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (graph_.lanes[lane].kind == TrackKind::kDevice) continue;
      int64_t carried_ps = 0;
      for (InstantId instant : schedule_.lane_order[lane]) {
        if (is_removed_[instant]) {
          const auto it = into.find(instant);
          if (it != into.end()) carried_ps = SaturatingSum(carried_ps, it->second);
        } else if (carried_ps > 0) {
          carried_ps_[instant] = std::exchange(carried_ps, 0);
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
        const InstantId stand_in = stand_ins_[edge.from];
        if (schedule_.IsMeeting(edge.to) || stand_in == kNoInstant) continue;
        const auto carried = carried_ps_.find(edge.to);
        if (carried != carried_ps_.end() && IsLaneEdge(schedule_, edge)) {
          edge.weight_ps = SaturatingSum(edge.weight_ps, carried->second);
        }
        edge.from = stand_in;
      }
      edges.push_back(edge);
    }
    graph_.edges = std::move(edges);
  }

  // Removes the edges out of meetings to which nobody comes any more.
  void CancelMeetings() {
    std::vector<bool> is_awaiting(graph_.instants.size());
    for (const GraphEdge& edge : graph_.edges) is_awaiting[edge.to] = true;
    const auto is_cancelled = [&](const GraphEdge& edge) {
      return schedule_.IsMeeting(edge.from) && !is_awaiting[edge.from];
    };
    graph_.edges.erase(std::remove_if(graph_.edges.begin(), graph_.edges.end(), is_cancelled),
                       graph_.edges.end());
  }

  // By event: whether it is removed.
  const std::vector<bool> removed_;
  Schedule& schedule_;
  PathGraph& graph_;
  // By instant: whether it is of a removed event.
  std::vector<bool> is_removed_;
  // By instant that follows a window's start: that start.
  absl::flat_hash_map<InstantId, InstantId> window_starts_;
  // By removed instant: what stands in for it, or kNoInstant.
  std::vector<InstantId> stand_ins_;
  // By instant that follows removed ones: the time that it takes over from them.
  absl::flat_hash_map<InstantId, int64_t> carried_ps_;
};

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
  int64_t there = 0;
  for (InstantId instant : schedule->start_instants) there += instant != kNoInstant ? 1 : 0;
  if (count == there) {
    return absl::InvalidArgumentError(
        "this removes every event; nothing would be left to be scheduled");
  }
  Remover(std::move(removed), schedule).Remove();
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

  schedule->measured_events = static_cast<size_t>(
      std::count(keeps_event.begin(), keeps_event.begin() + schedule->measured_events, true));
  Keep(keeps_event, &graph.events);
  Keep(keeps_event, &schedule->start_instants);
  Keep(keeps_event, &schedule->end_instants);
  const auto instant_of = [&](InstantId id) {
    return id == kNoInstant ? kNoInstant : instants[id];
  };
  for (InstantId& instant : schedule->start_instants) instant = instant_of(instant);
  for (InstantId& instant : schedule->end_instants) instant = instant_of(instant);
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
