#include "critical_path/what_if/schedule.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "critical_path/graph/step_times.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/topological_order.h"

namespace meridian {
namespace {

// True for an edge that shows no time of its own.
bool IsHidden(const GraphEdge& edge) { return edge.bound_by == BoundBy::kNothing; }

void FindEventInstants(Schedule* schedule) {
  const PathGraph& graph = schedule->graph;
  schedule->start_instants.assign(graph.events.size(), kNoInstant);
  schedule->end_instants.assign(graph.events.size(), kNoInstant);
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    const Instant& instant = graph.instants[id];
    if (instant.event == kNoEvent) continue;
    // An event's own instants come before others that are told by its name.
    InstantId& own =
        (instant.is_start ? schedule->start_instants : schedule->end_instants)[instant.event];
    if (own == kNoInstant) own = id;
  }
  for (GraphEventId event = 0; event < graph.events.size(); ++event) {
    InstantId &start = schedule->start_instants[event], &end = schedule->end_instants[event];
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

// Returns for each instant its place in an order that all edges follow.
std::vector<uint32_t> TopologicalPlaces(const PathGraph& graph) {
  const EdgesByInstant outgoing(graph, &GraphEdge::from);
  std::vector<uint32_t> missing(graph.instants.size()), places(graph.instants.size());
  for (const GraphEdge& edge : graph.edges) ++missing[edge.to];
  std::vector<InstantId> instants(graph.instants.size());
  std::iota(instants.begin(), instants.end(), 0);
  const std::vector<InstantId> order =
      TopologicalOrder(std::move(instants), &missing, [&](InstantId instant, const auto& visit) {
        for (EdgeId id : outgoing.Of(instant)) visit(graph.edges[id].to);
      });
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = static_cast<uint32_t>(i);
  return places;
}

void FindLaneOrder(Schedule* schedule) {
  const PathGraph& graph = schedule->graph;
  schedule->lane_order.assign(graph.lanes.size(), {});
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    if (!schedule->IsOfEvent(id)) continue;
    schedule->lane_order[schedule->LaneOf(graph.instants[id].event)].push_back(id);
  }
  const std::vector<uint32_t> places = TopologicalPlaces(graph);
  for (std::vector<InstantId>& instants : schedule->lane_order) {
    std::sort(instants.begin(), instants.end(), [&](InstantId a, InstantId b) {
      return std::make_tuple(graph.instants[a].time_ps, places[a]) <
             std::make_tuple(graph.instants[b].time_ps, places[b]);
    });
  }
}

// Streams run in order, also where nothing in the trace made that matter.
void AddMissingStreamOrder(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  absl::flat_hash_set<std::pair<InstantId, InstantId>> joined;
  for (const GraphEdge& edge : graph.edges) joined.emplace(edge.from, edge.to);
  for (LaneId lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != TrackKind::kDevice) continue;
    const std::vector<InstantId>& instants = schedule->lane_order[lane];
    for (size_t i = 1; i < instants.size(); ++i) {
      const bool follows =
          !graph.instants[instants[i - 1]].is_start && graph.instants[instants[i]].is_start;
      if (!follows || !joined.emplace(instants[i - 1], instants[i]).second) continue;
      graph.AddUntimed(instants[i - 1], instants[i], EdgeType::kKernelKernelDelay);
    }
  }
}

// The median delays before device work that show, by type of edge; absent when none shows.
using UsualDelays = std::array<std::optional<int64_t>, kNumEdgeTypes>;

// Returns the usual delays by lane; the last are those of the whole graph.
std::vector<UsualDelays> FindUsualDelays(const Schedule& schedule) {
  const PathGraph& graph = schedule.graph;
  std::vector<std::array<std::vector<int64_t>, kNumEdgeTypes>> seen(graph.lanes.size() + 1);
  for (const GraphEdge& edge : graph.edges) {
    // The time since the window's start is no delay: the window cuts it off.
    if (IsHidden(edge) || graph.instants[edge.from].event == kNoEvent) continue;
    if (!schedule.IsWorkStart(edge.to)) continue;
    const LaneId lane = schedule.LaneOf(graph.instants[edge.to].event);
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

void FillInHiddenDelays(Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  const std::vector<UsualDelays> usual = FindUsualDelays(*schedule);
  // By instant: the edge that shows its delay, or kNoEdge.
  std::vector<EdgeId> shown(graph.instants.size(), kNoEdge);
  for (EdgeId id = 0; id < graph.edges.size(); ++id) {
    if (!IsHidden(graph.edges[id])) shown[graph.edges[id].to] = id;
  }
  for (GraphEdge& edge : graph.edges) {
    const Instant& head = graph.instants[edge.to];
    if (!IsHidden(edge) || head.event == kNoEvent) continue;
    const int64_t room_ps = std::max<int64_t>(head.time_ps - graph.instants[edge.from].time_ps, 0);
    if (schedule->IsWorkStart(edge.to)) {
      const int type = static_cast<int>(edge.type);
      const int64_t anywhere_ps = usual.back()[type].value_or(0);
      edge.weight_ps =
          std::min(room_ps, usual[schedule->LaneOf(head.event)][type].value_or(anywhere_ps));
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

// Makes the graph that is replayed. Its first nodes are the instants, each taking the time of the
// edges into it; where these differ, each edge that takes longer than the least gets a node of its
// own, behind the instants. Times of an ExecutionGraph are called nanoseconds, but the replay only
// adds them up: here they count picoseconds.
ExecutionGraph ToExecutionGraph(const PathGraph& graph) {
  ExecutionGraphBuilder builder;
  const auto add_node = [&](InstantId instant, int64_t duration_ps) {
    const GraphEventId event = graph.instants[instant].event;
    ExecutionNode node;
    node.id = builder.node_count();
    node.name = event == kNoEvent ? "the window" : graph.EventName(event);
    node.duration_ns = duration_ps;
    Resource resource;
    if (event != kNoEvent) resource.rank = graph.LaneOf(event).rank;
    node.resource = builder.AddResource(resource);
    return builder.AddNode(node);
  };
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  // By instant: the least time of the edges into it.
  std::vector<int64_t> least_ps(graph.instants.size());
  for (InstantId id = 0; id < least_ps.size(); ++id) {
    const absl::Span<const EdgeId> edges = incoming.Of(id);
    if (!edges.empty()) least_ps[id] = graph.edges[edges[0]].weight_ps;
    for (EdgeId edge : edges) least_ps[id] = std::min(least_ps[id], graph.edges[edge].weight_ps);
    add_node(id, least_ps[id]);
  }
  for (EdgeId id : incoming.all()) {
    const GraphEdge& edge = graph.edges[id];
    NodeIndex source = edge.from;
    if (edge.weight_ps > least_ps[edge.to]) {
      source = add_node(edge.to, edge.weight_ps - least_ps[edge.to]);
      builder.AddDependency(source, edge.from, EdgeKind::kProgram);
    }
    builder.AddDependency(edge.to, source, EdgeKind::kProgram);
  }
  return std::move(builder).Build();
}

}  // namespace

Schedule BuildSchedule(const PathGraph& measured, const CriticalPath& path) {
  Schedule schedule = BuildHtaSchedule(measured, path);
  schedule.frozen_until_ps = FindStepTimes(measured).ReplayStartPs();
  FindLaneOrder(&schedule);
  AddMissingStreamOrder(&schedule);
  FillInHiddenDelays(&schedule);
  return schedule;
}

Schedule BuildHtaSchedule(const PathGraph& measured, const CriticalPath& path) {
  Schedule schedule;
  schedule.graph = CopyGraph(measured);
  FindEventInstants(&schedule);
  PutPathFirst(path, &schedule.graph.edges);
  return schedule;
}

absl::StatusOr<std::vector<int64_t>> SimulateSchedule(const PathGraph& graph) {
  if (graph.instants.size() + graph.edges.size() >= ExecutionGraph::kMaxNodes ||
      2 * graph.edges.size() >= ExecutionGraph::kMaxDependencies) {
    return absl::OutOfRangeError("the graph has too many edges to be run again");
  }
  const ExecutionGraph execution = ToExecutionGraph(graph);
  ReplayOptions options;
  options.resources = ReplayResources::kUnlimited;
  absl::StatusOr<GraphReplay> replay =
      ReplayGraph(execution, CommunicationMatch(execution), options);
  if (!replay.ok()) {
    const std::vector<NodeIndex> cycle = FindCycle(execution);
    if (cycle.empty()) return Annotate(replay.status(), "the schedule cannot be run again");
    return absl::FailedPreconditionError(absl::StrCat("events would wait for each other for ever: ",
                                                      DescribeCycle(execution, cycle)));
  }
  std::vector<int64_t> times_ps = std::move(replay->ends_ns);
  times_ps.resize(graph.instants.size());
  return times_ps;
}

void PutTimes(const std::vector<int64_t>& times_ps, Schedule* schedule) {
  PathGraph& graph = schedule->graph;
  for (InstantId id = 0; id < graph.instants.size(); ++id) {
    graph.instants[id].time_ps = graph.window_start_ps + times_ps[id];
  }
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    const InstantId start = schedule->start_instants[id], end = schedule->end_instants[id];
    if (start == kNoInstant || end == kNoInstant) continue;
    graph.events[id].start_ps = graph.instants[start].time_ps;
    graph.events[id].duration_ps = graph.instants[end].time_ps - graph.instants[start].time_ps;
  }
  if (graph.end_instant.has_value())
    graph.window_end_ps = graph.instants[*graph.end_instant].time_ps;
}

}  // namespace meridian
