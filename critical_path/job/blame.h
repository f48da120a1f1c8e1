// SPDX-License-Identifier: Apache-2.0
// Which rank kept the others waiting where ranks meet, and what it spent the time on.
//
//   rank 0  --mm, 100 us--[all-reduce . . waits 200 us . . . . transfer]
//   rank 1  ----host gap, 180 us----[launch, 20 us]--mm, 100 us--[all-reduce]
//   blame                 #######################################   200 us: gap 180, launch 20
//
// How much blame there is: at each meeting the rank that came last kept the others waiting, and is
// blamed for the time that they waited, on average. Going back from its arrival along what it
// waited for, each moment counts by the share of the others that had come already. An earlier
// meeting ends that: a rank that is late only because it waited itself is not to blame. Nor is it
// to blame for a transfer that ends later on it than on others, which all members do together. What
// a rank did before its own window is not known, and listed apart, unless the windows are chosen
// steps: then it was late before its step.
//
// Blame is for waiting, whether or not the waiting made the run longer: what did is on the critical
// path. In a run whose hosts are the bottleneck devices wait much, and the path leads past them.
//
// What is blamed: what the rank spent more time in than those that it met did, on average, over the
// whole step; the blame is divided in proportion, and is no more than that. A rank that slept and
// then computed as the others did is late because it slept, though it computed while the others
// waited. And stages of a pipeline, which wait for each other by the order of the work, are not to
// blame for that.
#ifndef CRITICAL_PATH_JOB_BLAME_H_
#define CRITICAL_PATH_JOB_BLAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "critical_path/graph/path_graph.h"

namespace meridian {

// The blame for one op of one rank in one step.
struct BlameRow {
  // The step of the meetings at which the others waited; absent when the trace has no steps.
  std::optional<int64_t> step;
  int64_t rank = 0;
  // The name of the event that the time is booked on, or what it is spent on when there is none.
  std::string op;
  int64_t time_ps = 0;
  // Of the largest part of the time: what it was spent on, of a gap the event after which it began
  // (empty when there is none), and what the others waited in meanwhile.
  BoundBy bound_by = BoundBy::kNothing;
  std::string after;
  std::string waited_in;
};

struct RankBlame {
  int64_t rank = 0;
  // The sum of the rank's rows.
  int64_t blamed_ps = 0;
  // How long the rank waited itself, in all meetings.
  int64_t waited_ps = 0;
};

struct Blame {
  // The largest first.
  std::vector<BlameRow> rows;
  // What others waited at their first meeting because a rank's trace begins later than theirs,
  // unless no step counts that time (PathGraph::first_step_waits_for_all). In no row above.
  std::vector<BlameRow> beginnings;
  // All ranks that take part in a meeting, in ascending order.
  std::vector<RankBlame> ranks;
};

// Returns who kept others waiting; nothing for graphs without meetings.
Blame FindBlame(const PathGraph& graph);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_BLAME_H_
