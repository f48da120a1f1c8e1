#include "critical_path/graph/critical_path.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/topological_order.h"

namespace meridian {
namespace {

// Returns the instants that have edges, in the order in which edges first name them.
std::vector<InstantId> InstantsInOrder(const PathGraph& graph) {
  std::vector<InstantId> order;
  std::vector<bool> seen(graph.instants.size());
  for (const GraphEdge& edge : graph.edges) {
    for (InstantId instant : {edge.from, edge.to}) {
      if (seen[instant]) continue;
      seen[instant] = true;
      order.push_back(instant);
    }
  }
  return order;
}

std::string DescribeInstant(const PathGraph& graph, InstantId id) {
  const Instant& instant = graph.instants[id];
  if (instant.event == kNoEvent) return "the window's bound";
  return absl::StrCat("the ", instant.is_start ? "start" : "end", " of '",
                      graph.EventName(instant.event), "' (event ",
                      graph.events[instant.event].position, ")");
}

}  // namespace

absl::StatusOr<PathOrder> PathOrder::Create(const PathGraph& graph) {
  ASSIGN_OR_RETURN(std::vector<InstantId> instants, TopologicalInstants(graph));
  return PathOrder{std::move(instants), EdgesByInstant(graph, &GraphEdge::to)};
}

absl::StatusOr<LongestPaths> FindLongestPaths(const PathGraph& graph, const PathOrder& order) {
  const std::vector<InstantId>& sorted = order.instants;
  LongestPaths paths = {std::vector<int64_t>(graph.instants.size()),
                        std::vector<EdgeId>(graph.instants.size(), kNoEdge),
                        sorted.empty() ? 0 : sorted.front()};
  for (InstantId instant : sorted) {
    int64_t& length_ps = paths.lengths_ps[instant];
    for (EdgeId id : order.incoming.Of(instant)) {
      const GraphEdge& edge = graph.edges[id];
      int64_t sum_ps = 0;
      if (__builtin_add_overflow(paths.lengths_ps[edge.from], edge.weight_ps, &sum_ps)) {
        return absl::OutOfRangeError(
            absl::StrCat("the path is longer than 106 days at ", DescribeInstant(graph, instant)));
      }
      if (paths.last_edges[instant] != kNoEdge && sum_ps <= length_ps) continue;
      length_ps = sum_ps;
      paths.last_edges[instant] = id;
    }
    if (length_ps > paths.lengths_ps[paths.farthest]) paths.farthest = instant;
  }
  return paths;
}

std::vector<InstantId> PathInstants(const PathGraph& graph, const CriticalPath& path) {
  std::vector<InstantId> instants = {graph.edges[path.edges.front()].from};
  for (EdgeId id : path.edges) instants.push_back(graph.edges[id].to);
  return instants;
}

absl::StatusOr<std::vector<InstantId>> TopologicalInstants(const PathGraph& graph) {
  const EdgesByInstant outgoing(graph, &GraphEdge::from);
  std::vector<uint32_t> missing(graph.instants.size());
  for (const GraphEdge& edge : graph.edges) ++missing[edge.to];
  const auto visit_next = [&](InstantId instant, const auto& visit) {
    for (EdgeId id : outgoing.Of(instant)) visit(graph.edges[id].to);
  };
  std::vector<InstantId> sorted =
      graph.end_instant.has_value()
          ? TopologicalChains(InstantsInOrder(graph), &missing, visit_next)
          : TopologicalOrder(InstantsInOrder(graph), &missing, visit_next);
  const auto stuck = std::find_if(missing.begin(), missing.end(), [](uint32_t n) { return n > 0; });
  if (stuck == missing.end()) return sorted;
  // Whoever waits for ever waits for one that does: going back leads to a circle, and around it.
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  std::vector<bool> seen(graph.instants.size());
  auto at = static_cast<InstantId>(stuck - missing.begin());
  while (!seen[at]) {
    seen[at] = true;
    const absl::Span<const EdgeId> edges = incoming.Of(at);
    at = graph
             .edges[*absl::c_find_if(edges,
                                     [&](EdgeId id) { return missing[graph.edges[id].from] > 0; })]
             .from;
  }
  return InvalidArgument("events would wait for each other for ever, in a circle, at ",
                         DescribeInstant(graph, at),
                         "; the trace's times or correlations contradict themselves");
}

absl::StatusOr<std::vector<int64_t>> EarliestTimes(const PathGraph& graph) {
  ASSIGN_OR_RETURN(const PathOrder order, PathOrder::Create(graph));
  ASSIGN_OR_RETURN(LongestPaths paths, FindLongestPaths(graph, order));
  return std::move(paths.lengths_ps);
}

absl::StatusOr<CriticalPath> FindLongestPath(const PathGraph& graph) {
  ASSIGN_OR_RETURN(const PathOrder order, PathOrder::Create(graph));
  ASSIGN_OR_RETURN(const LongestPaths paths, FindLongestPaths(graph, order));
  return LongestPathOf(graph, paths);
}

absl::StatusOr<CriticalPath> LongestPathOf(const PathGraph& graph, const LongestPaths& paths) {
  if (graph.edges.empty()) {
    return FailedPrecondition("no two events depend on each other: there is no path");
  }
  InstantId end = paths.farthest;
  // A path without time ends at once; then any edge will do.
  if (paths.last_edges[end] == kNoEdge) end = graph.edges.front().to;
  if (graph.end_instant.has_value()) end = *graph.end_instant;

  CriticalPath path;
  path.length_ps = paths.lengths_ps[end];
  for (EdgeId last = paths.last_edges[end]; last != kNoEdge;
       last = paths.last_edges[graph.edges[last].from]) {
    path.edges.push_back(last);
  }
  std::reverse(path.edges.begin(), path.edges.end());
  if (path.edges.empty()) {
    return FailedPrecondition("nothing leads to the window's end: there is no path");
  }
  return path;
}

void VisitPieces(const PathGraph& graph, const CriticalPath& path, const StepTimes& steps,
                 absl::FunctionRef<void(const PathPiece&)> visit) {
  for (const EdgeId id : path.edges) {
    const GraphEdge& edge = graph.edges[id];
    // Only edges that stand for all the time between their ends follow each other in time.
    int64_t from_ps = graph.Time(edge.from);
    if (steps.steps.empty() || edge.weight_ps != graph.Time(edge.to) - from_ps) {
      visit({id, edge.weight_ps, edge.bound_by, std::nullopt});
      continue;
    }
    // At least one piece, also of an edge without time.
    do {
      PathPiece piece = {id, graph.Time(edge.to) - from_ps, edge.bound_by, steps.Find(from_ps)};
      if (steps.before_end_ps.has_value() && from_ps < *steps.before_end_ps) {
        piece.time_ps = std::min(piece.time_ps, *steps.before_end_ps - from_ps);
        piece.bound_by = BoundBy::kBeforeStep;
      } else if (piece.step.has_value()) {
        piece.time_ps = std::min(piece.time_ps, steps.steps[*piece.step].end_ps - from_ps);
      } else if (from_ps < steps.steps.front().start_ps) {
        piece.time_ps = std::min(piece.time_ps, steps.steps.front().start_ps - from_ps);
      }
      from_ps += piece.time_ps;
      visit(piece);
    } while (from_ps < graph.Time(edge.to));
  }
}

PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path) {
  PathBreakdown breakdown;
  // By what tells shares apart: the place of the share.
  using Key = std::tuple<GraphEventId, GraphEventId, EdgeType, BoundBy>;
  absl::flat_hash_map<Key, size_t> places;
  VisitPieces(graph, path, FindStepTimes(graph), [&](const PathPiece& piece) {
    const GraphEdge& edge = graph.edges[piece.edge];
    breakdown.time_ps[static_cast<int>(piece.bound_by)] += piece.time_ps;
    EventShare wanted = {kNoEvent, edge.type, piece.bound_by, 0, kNoEvent};
    if (piece.bound_by == edge.bound_by) {
      wanted.event = edge.event;
      const bool is_gap = edge.event == kNoEvent && edge.bound_by == BoundBy::kHostGap;
      if (is_gap) wanted.before = graph.instants[edge.to].event;
    }
    const Key key(wanted.event, wanted.before, wanted.type, wanted.bound_by);
    const auto [place, is_new] = places.try_emplace(key, breakdown.shares.size());
    if (is_new) breakdown.shares.push_back(wanted);
    breakdown.shares[place->second].time_ps += piece.time_ps;
  });
  return breakdown;
}

}  // namespace meridian
