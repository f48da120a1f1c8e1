// SPDX-License-Identifier: Apache-2.0
// The longest path of a graph, the chain of events that nothing else could have hidden, and what
// its time is spent on.
#ifndef CRITICAL_PATH_GRAPH_CRITICAL_PATH_H_
#define CRITICAL_PATH_GRAPH_CRITICAL_PATH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/graph/step_times.h"

namespace meridian {

struct CriticalPath {
  // In order: each begins where the one before ends. Never empty.
  std::vector<EdgeId> edges;
  // The sum of the edges' weights.
  int64_t length_ps = 0;
};

// Returns the instants of the path in order, one more than it has edges.
std::vector<InstantId> PathInstants(const PathGraph& graph, const CriticalPath& path);

// Finds the longest path that ends in graph.end_instant, or anywhere if there is none. In time
// linear in instants and edges.
//
// Of equally long paths one is chosen by the order of the edges alone. Instants count in the order
// in which edges first name them; they are sorted topologically, generation by generation, each in
// the order in which the generation before completes its members. An instant's predecessor is its
// first incoming edge of those with the greatest sum; the path's end is the first instant, in
// topological order, of those with the greatest sum. (This is what networkx.dag_longest_path does,
// so that equal graphs have equal paths.)
//
// A graph with a cycle is InvalidArgument, naming an event in it; one without edges is
// FailedPrecondition; a sum that no int64 holds is OutOfRange.
absl::StatusOr<CriticalPath> FindLongestPath(const PathGraph& graph);

// Returns the instants that have edges in the topological order above, or, where the graph says where
// its path ends so that no path depends on it, in one that is quicker to walk. Errors are those of a
// cycle.
absl::StatusOr<std::vector<InstantId>> TopologicalInstants(const PathGraph& graph);

// The longest paths to all instants.
struct LongestPaths {
  // By instant: the length of the longest path to it, in ps. So late it happens if everything happens
  // as soon as all that it waits for has happened, plus the edge's time.
  std::vector<int64_t> lengths_ps;
  // By instant: the last edge of that path; kNoEdge where no edge leads.
  std::vector<EdgeId> last_edges;
  // The instant to which the longest of all leads.
  InstantId farthest = 0;
};

// What the longest paths of a graph do not depend on its times for: made once, it serves the graph
// with any times.
struct PathOrder {
  // Errors are those of a cycle.
  static absl::StatusOr<PathOrder> Create(const PathGraph& graph);

  // TopologicalInstants.
  std::vector<InstantId> instants;
  EdgesByInstant incoming;
};

// A sum that no int64 holds is OutOfRange.
absl::StatusOr<LongestPaths> FindLongestPaths(const PathGraph& graph, const PathOrder& order);

// Returns the path that FindLongestPath would.
absl::StatusOr<CriticalPath> LongestPathOf(const PathGraph& graph, const LongestPaths& paths);

// Returns the lengths of LongestPaths. Errors are those of FindLongestPath; a graph without edges is
// none.
absl::StatusOr<std::vector<int64_t>> EarliestTimes(const PathGraph& graph);

// A stretch of the path: all the time of one of its edges, or the part of it that lies in one step.
struct PathPiece {
  EdgeId edge = kNoEdge;
  int64_t time_ps = 0;
  // That of the edge, or kBeforeStep for time before the first step, while work that was launched
  // earlier ran.
  BoundBy bound_by = BoundBy::kNothing;
  // Where in StepTimes::steps the step is that it lies in; absent for none.
  std::optional<size_t> step;
};

// Calls visit with each piece of the path, cut where steps begin and end, in order. Their times add
// up to the path's length.
void VisitPieces(const PathGraph& graph, const CriticalPath& path, const StepTimes& steps,
                 absl::FunctionRef<void(const PathPiece&)> visit);

// The time on the path that is booked on one event for one reason.
struct EventShare {
  // kNoEvent: time that is booked on no event, all of one reason together; of host gaps all before
  // the same event.
  GraphEventId event = kNoEvent;
  EdgeType type = EdgeType::kOperator;
  BoundBy bound_by = BoundBy::kNothing;
  int64_t time_ps = 0;
  // Of a host gap: the event before which it is; kNoEvent when it is before none.
  GraphEventId before = kNoEvent;
};

struct PathBreakdown {
  // Time by BoundBy; the sum is the path's length.
  std::array<int64_t, kNumBoundBy> time_ps = {};
  // In the order in which the path meets them. The sum of their times is the path's length, too.
  std::vector<EventShare> shares;

  int64_t Of(BoundBy bound_by) const { return time_ps[static_cast<int>(bound_by)]; }
};

// Time before the first step, while work that was launched earlier ran, counts as kBeforeStep and
// is booked on no event.
PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path);

}  // namespace meridian

#endif  // CRITICAL_PATH_GRAPH_CRITICAL_PATH_H_
