// SPDX-License-Identifier: Apache-2.0
// The graphs of a job's ranks, joined where ranks wait for each other:
//
//   rank 0  ---->[start]. . . . waits . . . . .[end]---->
//                   \ 0                      /
//                    +----->(meeting)-------+   transfer
//                   / 0                      \ .
//   rank 1  ------ late ------>[start]--------[end]---->
//
// A meeting is passed when the last has come, and nobody leaves before that. So the path leads from
// the end on any rank back to the start on the rank that came last, and on along that rank: it
// never waits, it goes where the others were waited for.
//
// For the path of one rank alone, the time until the last has come is wait_for_other_ranks.
#ifndef CRITICAL_PATH_JOB_RANK_JOIN_H_
#define CRITICAL_PATH_JOB_RANK_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/graph/path_graph.h"

namespace meridian {

// An instant in the graph of one of a job's ranks.
struct RankInstant {
  // Position in JobGraph::ranks.
  size_t rank = 0;
  InstantId instant = 0;
};

struct Meeting {
  // What the ranks do together, e.g. "all-reduce psum.7".
  std::string name;
  // The step in which they meet; absent when the trace has no steps.
  std::optional<int64_t> step;
  // Starts of the events that are waited for, and ends of those that wait. In an all-reduce both
  // are all members; for the leaf of a broadcast root and leaf are waited for, and the leaf waits.
  std::vector<RankInstant> arrivals;
  std::vector<RankInstant> departures;
  std::optional<GraphTransfer> transfer = std::nullopt;
};

// The graph of one rank, which explains the whole time of its window (path_graph.h) and has an end
// instant; every edge runs forward in time.
struct RankGraph {
  int64_t rank = 0;
  PathGraph graph;
};

// The graphs of a job's ranks, whose times are those of one clock, and where the ranks meet.
struct JobGraph {
  // The graphs of the ranks, in order of the ranks.
  std::vector<RankGraph> ranks;
  std::vector<Meeting> meetings;
  // Whether the windows are chosen steps of longer recordings. Then a rank whose window begins
  // later than others' was late itself, which an event before_step shows; otherwise nobody knows
  // what it did.
  bool windows_are_chosen = false;
};

struct JoinedGraph {
  PathGraph graph;
  // How many ends come before their meeting was complete, since clocks disagree. They do not wait.
  int64_t against_time = 0;
};

// Joins all ranks. The window lasts from the first start to the last end of the ranks' windows; the
// time until a rank's own window begins is before_step or a host gap. OutOfRange when the ranks lie
// too far apart, or have too many instants, to be counted.
absl::StatusOr<JoinedGraph> JoinRanks(JobGraph job);

// Returns the graph of one rank, by its position, in which waiting for others is told apart.
absl::StatusOr<JoinedGraph> ShowWaits(JobGraph job, size_t rank);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_RANK_JOIN_H_
