// SPDX-License-Identifier: Apache-2.0
// A measured graph made ready to be edited and run again with other times.
//
// In a measured graph one edge into each instant stands for all the time before it, the last thing
// that had to happen; what else had to happen weighs nothing, since it was over long before. When
// times change, another thing may become the last, and it has a delay of its own that the
// measurement did not show:
//
//   launch call    |--launch delay--|                    hidden: the kernel before ended later
//   stream         |--- kernel before ---| gap |--- kernel ---|
//
// A what-if graph has these hidden delays filled in, each as far as there was room for it, so that
// it takes exactly the measured times when it is run without edits. To run it is to let everything
// happen as soon as it can (EarliestTimes of critical_path.h): lanes do one thing after the other
// because their edges say so.
#ifndef CRITICAL_PATH_WHAT_IF_WHAT_IF_GRAPH_H_
#define CRITICAL_PATH_WHAT_IF_WHAT_IF_GRAPH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"

namespace meridian {

struct WhatIfGraph {
  // An edge's weight is the least time between its instants. The edges of the measured path come
  // first, so that it stays the path for as long as it is one of the longest.
  PathGraph graph;

  // Edits leave times that end by then as they are; absent when all may change. What was before the
  // first step, and ran into it, is only partly in the profile, so that it cannot be run again.
  std::optional<int64_t> frozen_until_ps;

  // By event: its start and its end; kNoInstant in both for events that do not have both.
  std::vector<InstantId> start_instants;
  std::vector<InstantId> end_instants;

  // True for an edge whose time edits leave as it is; until the graph is run, its instants have
  // the measured times.
  bool IsFrozen(const GraphEdge& edge) const {
    return frozen_until_ps.has_value() && graph.instants[edge.to].time_ps <= *frozen_until_ps;
  }
  // False for the window's ends, and for the instants in which ranks meet.
  bool IsOfEvent(InstantId id) const {
    const Instant& instant = graph.instants[id];
    return instant.event != kNoEvent &&
           (instant.is_start ? start_instants : end_instants)[instant.event] == id;
  }
  // True for an instant in which ranks meet.
  bool IsMeeting(InstantId id) const {
    return graph.instants[id].event != kNoEvent && !IsOfEvent(id);
  }
  // True for the start of device work.
  bool IsWorkStart(InstantId id) const {
    return graph.instants[id].is_start && IsOfEvent(id) && IsOnDevice(graph.instants[id].event);
  }
  LaneId LaneOf(GraphEventId event) const { return graph.events[event].lane; }
  int64_t RankOf(GraphEventId event) const { return graph.LaneOf(event).rank; }
  bool IsOnDevice(GraphEventId event) const {
    return graph.LaneOf(event).kind == TrackKind::kDevice;
  }
};

// Makes the what-if graph of a graph built from a trace (trace_graph.h) and its path. A hidden
// delay is
//
// - into the start of device work: the median of the delays of its type (launch, kernel-kernel,
//   sync) that show on the same stream, else in the whole graph, else none. Waiting for what is not
//   in the trace is no delay;
// - into any other instant: the delay that shows there. A call returns after what it waits for, and
//   a collective transfers after its last member came, whichever that is;
// - into the window's end: none;
//
// but never more than the measured time between the instants.
WhatIfGraph MakeWhatIfGraph(PathGraph measured, const CriticalPath& path);

// Makes that of HTA's graph, whose edges weigh what they weigh: HTA's own what-if.
WhatIfGraph MakeHtaWhatIfGraph(PathGraph measured, const CriticalPath& path);

// Puts the times of a run, by instant in ps from 0, into the instants, the events and the window's
// end of a graph of ours.
void PutTimes(const std::vector<int64_t>& times_ps, WhatIfGraph* edited);

// Returns the sum of two times, or the greatest time there is: edits can make times that do not add
// up, and a graph with such a time is refused when it is run.
inline int64_t SaturatingSum(int64_t a_ps, int64_t b_ps) {
  int64_t sum_ps = 0;
  return __builtin_add_overflow(a_ps, b_ps, &sum_ps) ? std::numeric_limits<int64_t>::max() : sum_ps;
}

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_WHAT_IF_GRAPH_H_
