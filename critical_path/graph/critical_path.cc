#include "critical_path/graph/critical_path.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

// Names an instant on a cycle. `missing` says how many edges lead to an instant from others that
// wait for ever.
absl::Status DescribeCycle(const PathGraph& graph, const std::vector<uint32_t>& missing) {
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  const std::vector<InstantId> instants = InstantsInOrder(graph);
  InstantId on_cycle = *std::find_if(instants.begin(), instants.end(),
                                     [&](InstantId id) { return missing[id] > 0; });
  // Whoever waits for ever waits for one that does: going back often enough ends on a cycle.
  for (size_t step = 0; step < instants.size(); ++step) {
    for (EdgeId id : incoming.Of(on_cycle)) {
      if (missing[graph.edges[id].from] == 0) continue;
      on_cycle = graph.edges[id].from;
      break;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "events wait for each other in a circle, through ", DescribeInstant(graph, on_cycle),
      "; the trace's times or correlations contradict themselves"));
}

// Returns the instants that have edges in topological order.
absl::StatusOr<std::vector<InstantId>> SortTopologically(const PathGraph& graph) {
  const EdgesByInstant outgoing(graph, &GraphEdge::from);
  std::vector<uint32_t> missing(graph.instants.size());
  for (const GraphEdge& edge : graph.edges) ++missing[edge.to];
  std::vector<InstantId> sorted =
      TopologicalOrder(InstantsInOrder(graph), &missing, [&](InstantId instant, const auto& visit) {
        for (EdgeId id : outgoing.Of(instant)) visit(graph.edges[id].to);
      });
  const bool has_cycle =
      std::any_of(missing.begin(), missing.end(), [](uint32_t count) { return count > 0; });
  if (has_cycle) return DescribeCycle(graph, missing);
  return sorted;
}

// Finds the share of an edge among those of its event, which are few.
class ShareIndex {
 public:
  ShareIndex(const PathGraph& graph, std::vector<EventShare>* shares)
      : graph_(graph), shares_(*shares), last_of_event_(2 * graph.events.size() + 1, kNone) {}

  EventShare& Find(const GraphEdge& edge, BoundBy bound_by) {
    if (bound_by != edge.bound_by) return FindAt({kNoEvent, edge.type, bound_by, 0, 0, kNoEvent});
    const bool is_gap = edge.event == kNoEvent && edge.bound_by == BoundBy::kHostGap;
    const GraphEventId before = is_gap ? graph_.instants[edge.to].event : kNoEvent;
    return FindAt({edge.event, edge.type, bound_by, 0, 0, before});
  }

 private:
  EventShare& FindAt(const EventShare& wanted) {
    // Gaps before events have the places behind the events; what is of no event has the last.
    size_t place = last_of_event_.size() - 1;
    if (wanted.event != kNoEvent) place = wanted.event;
    if (wanted.before != kNoEvent) place = graph_.events.size() + wanted.before;
    size_t& last = last_of_event_[place];
    for (size_t i = last; i != kNone; i = before_[i]) {
      EventShare& share = shares_[i];
      if (share.type == wanted.type && share.bound_by == wanted.bound_by) return share;
    }
    before_.push_back(last);
    last = shares_.size();
    shares_.push_back(wanted);
    return shares_.back();
  }

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  const PathGraph& graph_;
  std::vector<EventShare>& shares_;
  // By event: the place of its newest share, or kNone.
  std::vector<size_t> last_of_event_;
  // By share: the place of the same event's share before it, or kNone.
  std::vector<size_t> before_;
};

}  // namespace

std::vector<InstantId> PathInstants(const PathGraph& graph, const CriticalPath& path) {
  std::vector<InstantId> instants = {graph.edges[path.edges.front()].from};
  for (EdgeId id : path.edges) instants.push_back(graph.edges[id].to);
  return instants;
}

absl::StatusOr<CriticalPath> FindLongestPath(const PathGraph& graph) {
  if (graph.edges.empty()) {
    return absl::FailedPreconditionError("no two events depend on each other: there is no path");
  }
  ASSIGN_OR_RETURN(const std::vector<InstantId> sorted, SortTopologically(graph));
  const EdgesByInstant incoming(graph, &GraphEdge::to);
  std::vector<int64_t> length_ps(graph.instants.size());
  std::vector<EdgeId> last_edge(graph.instants.size(), kNoEdge);
  InstantId end = sorted.front();
  for (InstantId instant : sorted) {
    for (EdgeId id : incoming.Of(instant)) {
      const GraphEdge& edge = graph.edges[id];
      int64_t sum_ps = 0;
      if (__builtin_add_overflow(length_ps[edge.from], edge.weight_ps, &sum_ps)) {
        return absl::OutOfRangeError(
            absl::StrCat("the path is longer than 106 days at ", DescribeInstant(graph, instant)));
      }
      if (last_edge[instant] != kNoEdge && sum_ps <= length_ps[instant]) continue;
      length_ps[instant] = sum_ps;
      last_edge[instant] = id;
    }
    if (length_ps[instant] > length_ps[end]) end = instant;
  }
  // A path without time ends at once; then any edge will do.
  if (last_edge[end] == kNoEdge) end = graph.edges.front().to;
  if (graph.end_instant.has_value()) end = *graph.end_instant;

  CriticalPath path;
  path.length_ps = length_ps[end];
  for (InstantId at = end; last_edge[at] != kNoEdge; at = graph.edges[last_edge[at]].from) {
    path.edges.push_back(last_edge[at]);
  }
  std::reverse(path.edges.begin(), path.edges.end());
  if (path.edges.empty()) {
    return absl::FailedPreconditionError("nothing leads to the window's end: there is no path");
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
  return BreakDown(graph, path, FindStepTimes(graph));
}

PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path, const StepTimes& steps) {
  PathBreakdown breakdown;
  ShareIndex index(graph, &breakdown.shares);
  // An edge that steps cut is one edge all the same.
  std::pair<EdgeId, BoundBy> last = {kNoEdge, BoundBy::kNothing};
  VisitPieces(graph, path, steps, [&](const PathPiece& piece) {
    breakdown.time_ps[static_cast<int>(piece.bound_by)] += piece.time_ps;
    EventShare& share = index.Find(graph.edges[piece.edge], piece.bound_by);
    share.time_ps += piece.time_ps;
    const std::pair<EdgeId, BoundBy> counted = {piece.edge, piece.bound_by};
    if (std::exchange(last, counted) != counted) ++share.count;
  });
  return breakdown;
}

}  // namespace meridian
