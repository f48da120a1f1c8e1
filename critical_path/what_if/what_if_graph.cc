#include "critical_path/what_if/what_if_graph.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "critical_path/graph/step_times.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// True for an edge that shows no time of its own.
bool IsHidden(const GraphEdge& edge) { return edge.bound_by == BoundBy::kNothing; }

void FindEventInstants(WhatIfGraph* edited) {
  const PathGraph& graph = edited->graph;
  edited->start_instants.assign(graph.events.size(), kNoInstant);
  edited->end_instants.assign(graph.events.size(), kNoInstant);
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    const Instant& instant = graph.instants[id];
    if (instant.event == kNoEvent) continue;
    // An event's own instants come before others that are told by its name.
    InstantId& own =
        (instant.is_start ? edited->start_instants : edited->end_instants)[instant.event];
    if (own == kNoInstant) own = id;
  }
  for (GraphEventId event = 0; event < graph.events.size(); ++event) {
    InstantId &start = edited->start_instants[event], &end = edited->end_instants[event];
    if (start == kNoInstant || end == kNoInstant) start = end = kNoInstant;
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

// Streams run in order, also where nothing in the trace made that matter.
void AddMissingStreamOrder(WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const auto is_of_work = [&](InstantId id) {
    return edited->IsOfEvent(id) && edited->IsOnDevice(graph.instants[id].event);
  };
  std::vector<std::vector<InstantId>> streams(graph.lanes.size());
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    const GraphEventId event = graph.instants[id].event;
    if (!is_of_work(id)) continue;
    streams[edited->LaneOf(event)].push_back(id);
  }
  // By instant: its place in an order that all edges follow. The graph has a path, so no cycle.
  std::vector<size_t> places(graph.instants.size());
  const std::vector<InstantId> sorted = *TopologicalInstants(graph);
  for (size_t i = 0; i < sorted.size(); ++i) places[sorted[i]] = i;
  // By the start of work: the end before it on its stream, unless an edge leads from there to it.
  std::vector<InstantId> unjoined(graph.instants.size(), kNoInstant);
  for (std::vector<InstantId>& stream : streams) {
    std::sort(stream.begin(), stream.end(), [&](InstantId a, InstantId b) {
      return std::make_tuple(graph.Time(a), places[a]) < std::make_tuple(graph.Time(b), places[b]);
    });
    for (size_t i = 1; i < stream.size(); ++i) {
      const bool follows =
          !graph.instants[stream[i - 1]].is_start && graph.instants[stream[i]].is_start;
      if (follows) unjoined[stream[i]] = stream[i - 1];
    }
  }
  for (const GraphEdge& edge : graph.edges) {
    if (unjoined[edge.to] == edge.from) unjoined[edge.to] = kNoInstant;
  }
  for (const std::vector<InstantId>& stream : streams) {
    for (const InstantId start : stream) {
      if (unjoined[start] == kNoInstant) continue;
      graph.AddUntimed(unjoined[start], start, EdgeType::kKernelKernelDelay);
    }
  }
}

// The median delays before device work that show, by type of edge; absent when none shows.
using UsualDelays = std::array<std::optional<int64_t>, kNumEdgeTypes>;

// Returns the usual delays by lane; the last are those of the whole graph.
std::vector<UsualDelays> FindUsualDelays(const WhatIfGraph& edited) {
  const PathGraph& graph = edited.graph;
  std::vector<std::array<std::vector<int64_t>, kNumEdgeTypes>> seen(graph.lanes.size() + 1);
  for (const GraphEdge& edge : graph.edges) {
    // The time since the window's start is no delay: the window cuts it off. Nor is time in which
    // the device did something that the trace does not show.
    if (IsHidden(edge) || graph.instants[edge.from].event == kNoEvent) continue;
    if (edge.bound_by == BoundBy::kNotInTrace) continue;
    if (!edited.IsWorkStart(edge.to)) continue;
    const LaneId lane = edited.LaneOf(graph.instants[edge.to].event);
    seen[lane][static_cast<int>(edge.type)].push_back(edge.weight_ps);
    seen.back()[static_cast<int>(edge.type)].push_back(edge.weight_ps);
  }
  std::vector<UsualDelays> usual(seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    for (int type = 0; type < kNumEdgeTypes; ++type) {
      if (!seen[i][type].empty()) usual[i][type] = LowerMedian(std::move(seen[i][type]));
    }
  }
  return usual;
}

void FillInHiddenDelays(WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  const std::vector<UsualDelays> usual = FindUsualDelays(*edited);
  // By instant: the edge that shows its delay, or kNoEdge.
  std::vector<EdgeId> shown(graph.instants.size(), kNoEdge);
  for (EdgeId id = 0; id < graph.edges.size(); ++id) {
    if (!IsHidden(graph.edges[id])) shown[graph.edges[id].to] = id;
  }
  for (GraphEdge& edge : graph.edges) {
    const Instant& head = graph.instants[edge.to];
    if (!IsHidden(edge) || head.event == kNoEvent) continue;
    const int64_t room_ps = std::max<int64_t>(head.time_ps - graph.instants[edge.from].time_ps, 0);
    if (edited->IsWorkStart(edge.to)) {
      const int type = static_cast<int>(edge.type);
      const int64_t anywhere_ps = usual.back()[type].value_or(0);
      edge.weight_ps =
          std::min(room_ps, usual[edited->LaneOf(head.event)][type].value_or(anywhere_ps));
      edge.event = head.event;
      edge.bound_by = edge.type == EdgeType::kKernelLaunchDelay ? BoundBy::kKernelLaunchOverhead
                                                                : BoundBy::kKernelKernelOverhead;
    } else if (shown[edge.to] != kNoEdge) {
      const GraphEdge& delay = graph.edges[shown[edge.to]];
      edge.weight_ps = std::min(room_ps, delay.weight_ps);
      edge.event = delay.event;
      edge.bound_by = delay.bound_by;
    }
  }
}

}  // namespace

WhatIfGraph MakeWhatIfGraph(PathGraph measured, const CriticalPath& path) {
  const std::optional<int64_t> frozen_until_ps = FindStepTimes(measured).ReplayStartPs();
  WhatIfGraph edited = MakeHtaWhatIfGraph(std::move(measured), path);
  edited.frozen_until_ps = frozen_until_ps;
  AddMissingStreamOrder(&edited);
  FillInHiddenDelays(&edited);
  return edited;
}

WhatIfGraph MakeHtaWhatIfGraph(PathGraph measured, const CriticalPath& path) {
  WhatIfGraph edited;
  edited.graph = std::move(measured);
  FindEventInstants(&edited);
  PutPathFirst(path, &edited.graph.edges);
  return edited;
}

void PutTimes(const std::vector<int64_t>& times_ps, WhatIfGraph* edited) {
  PathGraph& graph = edited->graph;
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    graph.instants[id].time_ps = graph.window_start_ps + times_ps[id];
  }
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const InstantId start = edited->start_instants[id], end = edited->end_instants[id];
    if (start == kNoInstant || end == kNoInstant) continue;
    graph.events[id].start_ps = graph.instants[start].time_ps;
    graph.events[id].duration_ps = graph.instants[end].time_ps - graph.instants[start].time_ps;
  }
  if (graph.end_instant.has_value())
    graph.window_end_ps = graph.instants[*graph.end_instant].time_ps;
}

}  // namespace meridian
