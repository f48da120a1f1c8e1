#include "critical_path/what_if/structure_edits.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// How many events all edits together may add: each may double the events.
constexpr size_t kMaxAddedEvents = 1'000'000;

std::string DescribeEvent(const WhatIfGraph& edited, GraphEventId id) {
  return absl::StrCat("'", Printable(edited.graph.EventName(id)), "' (event ",
                      edited.graph.events[id].position, ")");
}

// An edge from the end of an event to the start of one that waits for it.
GraphEdge WaitEdge(const WhatIfGraph& edited, GraphEventId from, GraphEventId to,
                   int64_t delay_ps) {
  const InstantId end = edited.end_instants[from], start = edited.start_instants[to];
  if (!edited.IsOnDevice(to)) {
    return {end, start, delay_ps, kNoEvent, EdgeType::kDependency, BoundBy::kHostGap};
  }
  return {end, start, delay_ps, to, EdgeType::kSyncDependency, BoundBy::kKernelKernelOverhead};
}

// The places on its lane of an event's instants and of all between them, from begin up to end.
struct Run {
  size_t begin = 0;
  size_t end = 0;
};

using Places = absl::flat_hash_map<InstantId, size_t>;

// Returns the run of an event. InvalidArgument when it holds only one of the instants of another
// event, which then overlaps with this one.
absl::StatusOr<Run> FindRun(const WhatIfGraph& edited, const Places& places, GraphEventId event) {
  const std::vector<InstantId>& order = edited.lane_order[edited.LaneOf(event)];
  const Run run = {places.at(edited.start_instants[event]),
                   places.at(edited.end_instants[event]) + 1};
  absl::flat_hash_set<GraphEventId> open;
  for (size_t i = run.begin; i < run.end; ++i) {
    const Instant& instant = edited.graph.instants[order[i]];
    const bool is_whole =
        instant.is_start ? open.insert(instant.event).second : open.erase(instant.event) > 0;
    if (!is_whole) open.insert(kNoEvent);
  }
  if (run.end <= run.begin || !open.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(DescribeEvent(edited, event),
                     " overlaps with others on its thread or stream and cannot be moved"));
  }
  return run;
}

absl::Status NotTogether(const WhatIfGraph& edited, GraphEventId a, GraphEventId b) {
  return absl::InvalidArgumentError(
      absl::StrCat(DescribeEvent(edited, a), " and ", DescribeEvent(edited, b),
                   " are not on the same thread or stream, and within the same event"));
}

using Predecessors = absl::flat_hash_map<InstantId, InstantId>;

// Returns by instant of a lane what it follows there, or kNoInstant: on a stream starts follow the
// last end.
Predecessors FindPredecessors(const WhatIfGraph& edited, bool is_device,
                              const std::vector<InstantId>& order) {
  Predecessors predecessors;
  InstantId before = kNoInstant;
  for (InstantId instant : order) {
    const bool is_start = edited.graph.instants[instant].is_start;
    if (!is_device || is_start) predecessors[instant] = before;
    if (!is_device || !is_start) before = instant;
  }
  return predecessors;
}

// Lets calls of the host wait for the same work as before: one that waited for a stream's work
// waited for all before it, too.
void KeepHostWaits(const std::vector<InstantId>& old_order, const std::vector<InstantId>& order,
                   WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  Places places;
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  // Of the work up to some instant in the old order, what comes last in the new order: of the work
  // that stays on the stream, and of that which leaves it. kNoInstant when there is none.
  struct LastUntil {
    InstantId staying = kNoInstant;
    InstantId leaving = kNoInstant;
  };
  absl::flat_hash_map<InstantId, LastUntil> last_until;
  LastUntil last;
  for (InstantId instant : old_order) {
    if (!places.contains(instant)) {
      last.leaving = instant;
    } else if (last.staying == kNoInstant || places[instant] > places[last.staying]) {
      last.staying = instant;
    }
    last_until[instant] = last;
  }
  std::vector<GraphEdge> more;
  for (GraphEdge& edge : graph.edges) {
    const auto it = last_until.find(edge.from);
    const bool is_host_wait = it != last_until.end() && !graph.instants[edge.from].is_start &&
                              edited->IsOfEvent(edge.to) &&
                              !edited->IsOnDevice(graph.instants[edge.to].event);
    if (!is_host_wait) continue;
    const auto [staying, leaving] = it->second;
    edge.from = staying != kNoInstant ? staying : leaving;
    if (staying == kNoInstant || leaving == kNoInstant) continue;
    more.push_back(edge);
    more.back().from = leaving;
  }
  graph.edges.insert(graph.edges.end(), more.begin(), more.end());
}

// Moves the selected work of a stream to a stream of its own.
void SeparateStream(LaneId lane, const Selection& selection, WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  std::vector<InstantId> leaving, staying;
  for (InstantId instant : edited->lane_order[lane]) {
    (selection.events[graph.instants[instant].event] ? leaving : staying).push_back(instant);
  }
  if (leaving.empty() || staying.empty()) return;
  ReorderLane(lane, std::move(staying), edited);
  const auto new_lane = static_cast<LaneId>(graph.lanes.size());
  graph.lanes.push_back(graph.lanes[lane]);
  absl::StrAppend(&graph.lanes.back().thread, " overlapped");
  edited->lane_order.emplace_back();
  for (InstantId instant : leaving) graph.events[graph.instants[instant].event].lane = new_lane;
  ReorderLane(new_lane, std::move(leaving), edited);
}

// Lets the first of the awaiting events that starts after each selected one ends wait for it.
void AddLastMoments(const std::vector<GraphEventId>& selected, const Selection& until,
                    WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  std::vector<GraphEventId> awaiting = until.ToVector();
  const auto key = [&](GraphEventId id) {
    return std::make_pair(edited->RankOf(id), graph.events[id].start_ps);
  };
  std::stable_sort(awaiting.begin(), awaiting.end(),
                   [&](GraphEventId a, GraphEventId b) { return key(a) < key(b); });
  for (GraphEventId id : selected) {
    const auto end = std::make_pair(
        edited->RankOf(id), SaturatingSum(graph.events[id].start_ps, graph.events[id].duration_ps));
    const auto next = std::lower_bound(awaiting.begin(), awaiting.end(), end,
                                       [&](GraphEventId a, const auto& k) { return key(a) < k; });
    if (next == awaiting.end() || edited->RankOf(*next) != end.first) continue;
    graph.edges.push_back(WaitEdge(*edited, id, *next, /*delay_ps=*/0));
  }
}

// Adds what runs within, or was launched by, an event to be removed.
std::vector<bool> WithDescendants(const EventIndex& index, const WhatIfGraph& edited,
                                  const Selection& selection) {
  std::vector<bool> removed = selection.events;
  for (GraphEventId id = 0; id < removed.size(); ++id) {
    for (GraphEventId around = index.Parent(id); around != kNoEvent && !removed[id];
         around = index.Parent(around)) {
      removed[id] = selection.events[around];
    }
    if (edited.start_instants[id] == kNoInstant) removed[id] = false;
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

Removal PlanRemoval(std::vector<bool> removed, const WhatIfGraph& edited) {
  const PathGraph& graph = edited.graph;
  const size_t count = graph.instants.size();
  Removal removal = {std::move(removed), std::vector<bool>(count),
                     std::vector<InstantId>(count, kNoInstant), std::vector<int64_t>(count)};
  for (InstantId instant = 0; instant < count; ++instant) {
    removal.instants[instant] =
        edited.IsOfEvent(instant) && removal.events[graph.instants[instant].event];
  }
  // By instant that follows a window's start: that start. By removed instant of a thread: the time
  // that leads there and is kept.
  std::vector<InstantId> window_starts(count, kNoInstant);
  std::vector<int64_t> into_ps(count);
  for (const GraphEdge& edge : graph.edges) {
    const bool is_first = graph.instants[edge.from].event == kNoEvent;
    if (is_first) window_starts[edge.to] = edge.from;
    if (!removal.instants[edge.to]) continue;
    if (edited.IsOnDevice(graph.instants[edge.to].event)) continue;
    const bool is_removed_time = edge.event != kNoEvent && removal.events[edge.event];
    if ((is_first || IsLaneEdge(edited, edge)) && !is_removed_time) {
      into_ps[edge.to] = SaturatingSum(into_ps[edge.to], edge.weight_ps);
    }
  }
  for (LaneId lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::vector<InstantId>& instants = edited.lane_order[lane];
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

void ReplaceEdges(const Removal& removal, WhatIfGraph* edited) {
  std::vector<GraphEdge> edges;
  edges.reserve(edited->graph.edges.size());
  for (GraphEdge edge : edited->graph.edges) {
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
      if (edited->IsMeeting(edge.to) || stand_in == kNoInstant) continue;
      if (IsLaneEdge(*edited, edge)) {
        edge.weight_ps = SaturatingSum(edge.weight_ps, removal.carried_ps[edge.to]);
      }
      edge.from = stand_in;
    }
    edges.push_back(edge);
  }
  edited->graph.edges = std::move(edges);
}

// Removes the edges out of meetings to which nobody comes any more.
void CancelMeetings(WhatIfGraph* edited) {
  std::vector<GraphEdge>& edges = edited->graph.edges;
  std::vector<bool> is_awaiting(edited->graph.instants.size());
  for (const GraphEdge& edge : edges) is_awaiting[edge.to] = true;
  const auto is_cancelled = [&](const GraphEdge& edge) {
    return edited->IsMeeting(edge.from) && !is_awaiting[edge.from];
  };
  edges.erase(std::remove_if(edges.begin(), edges.end(), is_cancelled), edges.end());
}

// Lets each meeting name the event of a rank that still comes, where that of its last one was
// removed.
void RenameMeetings(WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  for (const GraphEdge& edge : graph.edges) {
    const GraphEventId met = graph.instants[edge.to].event;
    if (met == kNoEvent || edited->start_instants[met] != kNoInstant) continue;
    if (edited->IsOfEvent(edge.from))
      graph.instants[edge.to].event = graph.instants[edge.from].event;
  }
}

// Returns the new numbers of those that are kept; the others have none.
std::vector<uint32_t> Renumber(const std::vector<bool>& is_kept) {
  std::vector<uint32_t> numbers(is_kept.size());
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

bool IsLaneEdge(const WhatIfGraph& edited, const GraphEdge& edge) {
  if (!edited.IsOfEvent(edge.from) || !edited.IsOfEvent(edge.to)) return false;
  const GraphEventId from = edited.graph.instants[edge.from].event;
  const GraphEventId to = edited.graph.instants[edge.to].event;
  return edited.LaneOf(from) == edited.LaneOf(to) && (from != to || !edited.IsOnDevice(to));
}

void ReorderLane(LaneId lane, std::vector<InstantId> order, WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const bool is_device = graph.lanes[lane].kind == TrackKind::kDevice;
  const std::vector<InstantId>& old_order = edited->lane_order[lane];
  if (is_device) KeepHostWaits(old_order, order, edited);
  const Predecessors before = FindPredecessors(*edited, is_device, old_order);
  const Predecessors after = FindPredecessors(*edited, is_device, order);
  // By instant that follows another one now: the longest edge from what it followed before, or one
  // of negative time when there is none.
  const GraphEdge none = {0,
                          0,
                          -1,
                          kNoEvent,
                          is_device ? EdgeType::kKernelKernelDelay : EdgeType::kDependency,
                          is_device ? BoundBy::kKernelKernelOverhead : BoundBy::kHostGap};
  absl::flat_hash_map<InstantId, GraphEdge> relinked;
  for (const auto& [instant, predecessor] : after) {
    const auto it = before.find(instant);
    if (it == before.end() || it->second != predecessor) relinked[instant] = none;
  }
  const InstantId old_first = old_order.empty() ? kNoInstant : old_order.front();
  const InstantId new_first = order.empty() ? kNoInstant : order.front();
  const auto is_outdated = [&](GraphEdge& edge) {
    if (!is_device && edge.to == old_first && graph.instants[edge.from].event == kNoEvent) {
      if (new_first != kNoInstant) edge.to = new_first;
      return new_first == kNoInstant;
    }
    const auto it = relinked.find(edge.to);
    if (it == relinked.end() || !IsLaneEdge(*edited, edge)) return false;
    if (edge.weight_ps > it->second.weight_ps) it->second = edge;
    return true;
  };
  graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), is_outdated),
                    graph.edges.end());
  // What was first has had no time before it; it gets that of what is first now.
  if (relinked.contains(old_first) && relinked.contains(new_first)) {
    std::swap(relinked[old_first], relinked[new_first]);
  }
  for (InstantId instant : order) {
    const auto it = relinked.find(instant);
    if (it == relinked.end() || after.at(instant) == kNoInstant) continue;
    GraphEdge edge = it->second;
    edge.weight_ps = std::max<int64_t>(edge.weight_ps, 0);
    edge.from = after.at(instant);
    edge.to = instant;
    if (is_device) edge.event = graph.instants[instant].event;
    graph.edges.push_back(edge);
  }
  edited->lane_order[lane] = std::move(order);
}

void TidyEdges(WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  absl::flat_hash_map<std::pair<InstantId, InstantId>, size_t> places;
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
  if (!graph.end_instant.has_value()) return;
  for (const std::vector<InstantId>& instants : edited->lane_order) {
    if (instants.empty() || places.contains({instants.back(), *graph.end_instant})) continue;
    graph.AddUntimed(instants.back(), *graph.end_instant, EdgeType::kDependency);
  }
}

absl::Status AddEvents(absl::string_view name, int64_t duration_ps, const Selection& selection,
                       WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const std::vector<GraphEventId> anchors = selection.ToVector();
  if (edited->added_events + anchors.size() > kMaxAddedEvents) {
    return absl::OutOfRangeError(absl::StrCat("this adds ", anchors.size(), " events; at most ",
                                              kMaxAddedEvents - edited->added_events,
                                              " can be added"));
  }
  edited->added_events += anchors.size();
  uint32_t position = 0;
  for (const GraphEvent& event : graph.events) position = std::max(position, event.position);
  const NameId name_id = graph.names.Intern(name);
  // By the end of the event that the new one follows: the start of the new one, which its end
  // follows.
  absl::flat_hash_map<InstantId, InstantId> added;
  std::vector<GraphEdge> new_edges;
  for (GraphEventId anchor : anchors) {
    const InstantId before = edited->end_instants[anchor];
    const bool is_device = edited->IsOnDevice(anchor);
    const auto id = static_cast<GraphEventId>(graph.events.size());
    GraphEvent event = graph.events[anchor];
    event.name = name_id;
    event.start_ps = graph.instants[before].time_ps;
    event.duration_ps = duration_ps;
    event.position = ++position;
    graph.events.push_back(event);
    const auto start = static_cast<InstantId>(graph.instants.size());
    const InstantId end = start + 1;
    graph.instants.push_back({event.start_ps, id, /*is_start=*/true});
    graph.instants.push_back({SaturatingSum(event.start_ps, duration_ps), id, /*is_start=*/false});
    edited->start_instants.push_back(start);
    edited->end_instants.push_back(end);
    added[before] = start;
    new_edges.push_back({before, start, 0, kNoEvent,
                         is_device ? EdgeType::kKernelKernelDelay : EdgeType::kDependency,
                         BoundBy::kNothing});
    new_edges.push_back({start, end, duration_ps, id, EdgeType::kOperator,
                         is_device ? BoundBy::kGpuCompute : BoundBy::kCpu});
  }
  for (GraphEdge& edge : graph.edges) {
    const auto it = added.find(edge.from);
    if (it != added.end()) edge.from = it->second + 1;
  }
  graph.edges.insert(graph.edges.end(), new_edges.begin(), new_edges.end());
  for (std::vector<InstantId>& instants : edited->lane_order) {
    std::vector<InstantId> order;
    for (InstantId instant : instants) {
      order.push_back(instant);
      const auto it = added.find(instant);
      if (it != added.end()) order.insert(order.end(), {it->second, it->second + 1});
    }
    instants = std::move(order);
  }
  TidyEdges(edited);
  return absl::OkStatus();
}

void LinkEvents(GraphEventId from, GraphEventId to, int64_t delay_ps, WhatIfGraph* edited) {
  edited->graph.edges.push_back(WaitEdge(*edited, from, to, delay_ps));
  TidyEdges(edited);
}

absl::StatusOr<int64_t> UnlinkEvents(const Selection& from, const Selection& to,
                                     WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const auto is_meant = [&](const GraphEdge& edge) {
    if (!edited->IsOfEvent(edge.from) || !edited->IsOfEvent(edge.to)) return false;
    const GraphEventId tail = graph.instants[edge.from].event, head = graph.instants[edge.to].event;
    return edited->LaneOf(tail) != edited->LaneOf(head) && from.events[tail] && to.events[head];
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
                        GraphEventId target, bool before, WhatIfGraph* edited) {
  for (GraphEventId event : events) {
    if (edited->IsOnDevice(target) || edited->IsOnDevice(event)) continue;
    if (index.Parent(event) != index.Parent(target)) return NotTogether(*edited, event, target);
  }
  const LaneId lane = edited->LaneOf(target);
  const std::vector<InstantId>& order = edited->lane_order[lane];
  Places places;
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  ASSIGN_OR_RETURN(const Run target_run, FindRun(*edited, places, target));
  std::vector<bool> is_moved(order.size());
  for (GraphEventId event : events) {
    if (edited->LaneOf(event) != lane) return NotTogether(*edited, event, target);
    ASSIGN_OR_RETURN(const Run run, FindRun(*edited, places, event));
    // The one may also lie within the other.
    if (run.begin < target_run.end && target_run.begin < run.end) {
      return absl::InvalidArgumentError(
          absl::StrCat(DescribeEvent(*edited, event), " cannot be moved before or after itself"));
    }
    std::fill(is_moved.begin() + run.begin, is_moved.begin() + run.end, true);
  }
  std::vector<InstantId> new_order = order;
  const auto place = new_order.begin() + (before ? target_run.begin : target_run.end);
  const auto moves = [&](InstantId instant) { return is_moved[places.at(instant)]; };
  std::stable_partition(new_order.begin(), place, [&](InstantId id) { return !moves(id); });
  std::stable_partition(place, new_order.end(), moves);
  ReorderLane(lane, std::move(new_order), edited);
  TidyEdges(edited);
  return absl::OkStatus();
}

absl::Status OverlapEvents(const Selection& selection, const Selection* until,
                           WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const std::vector<GraphEventId> selected = selection.ToVector();
  for (GraphEventId id : selected) {
    if (edited->IsOnDevice(id)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        DescribeEvent(*edited, id), " runs on the host; only device work can be overlapped"));
  }
  const size_t lanes = graph.lanes.size();
  for (LaneId lane = 0; lane < lanes; ++lane) SeparateStream(lane, selection, edited);
  const auto is_wait = [&](const GraphEdge& edge) {
    if (!edited->IsOfEvent(edge.from) || !edited->IsWorkStart(edge.to)) return false;
    return selection.events[graph.instants[edge.from].event] &&
           !selection.events[graph.instants[edge.to].event];
  };
  graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), is_wait),
                    graph.edges.end());
  if (until != nullptr) AddLastMoments(selected, *until, edited);
  TidyEdges(edited);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RemoveEvents(const EventIndex& index, const Selection& selection,
                                     WhatIfGraph* edited) {
  std::vector<bool> removed = WithDescendants(index, *edited, selection);
  const int64_t count = std::count(removed.begin(), removed.end(), true);
  const std::vector<InstantId>& starts = edited->start_instants;
  const int64_t without_instants = std::count(starts.begin(), starts.end(), kNoInstant);
  if (count + without_instants == static_cast<int64_t>(starts.size())) {
    return absl::InvalidArgumentError("this removes every event; nothing would be left to be run");
  }
  const Removal removal = PlanRemoval(std::move(removed), *edited);
  ReplaceEdges(removal, edited);
  CancelMeetings(edited);
  for (std::vector<InstantId>& instants : edited->lane_order) {
    instants.erase(std::remove_if(instants.begin(), instants.end(),
                                  [&](InstantId instant) { return removal.instants[instant]; }),
                   instants.end());
  }
  for (GraphEventId id = 0; id < removal.events.size(); ++id) {
    if (removal.events[id]) edited->start_instants[id] = edited->end_instants[id] = kNoInstant;
  }
  TidyEdges(edited);
  return count;
}

void DropRemoved(WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  RenameMeetings(edited);
  std::vector<bool> keeps_event(graph.events.size()), keeps_instant(graph.instants.size());
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    keeps_event[id] = edited->start_instants[id] != kNoInstant;
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
  const std::vector<uint32_t> events = Renumber(keeps_event);
  const std::vector<uint32_t> instants = Renumber(keeps_instant);
  const auto event_of = [&](GraphEventId id) { return id == kNoEvent ? kNoEvent : events[id]; };

  Keep(keeps_event, &graph.events);
  for (std::vector<InstantId>* ends : {&edited->start_instants, &edited->end_instants}) {
    Keep(keeps_event, ends);
    for (InstantId& instant : *ends) {
      if (instant != kNoInstant) instant = instants[instant];
    }
  }
  Keep(keeps_instant, &graph.instants);
  for (Instant& instant : graph.instants) instant.event = event_of(instant.event);
  for (std::vector<InstantId>& order : edited->lane_order) {
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
