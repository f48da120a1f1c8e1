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
#ifndef CRITICAL_PATH_RANK_JOIN_H_
#define CRITICAL_PATH_RANK_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/path_graph.h"

namespace meridian {

// A node of the graph of one rank.
struct RankNode {
  // Position among the job's ranks.
  size_t rank = 0;
  NodeId node = 0;
};

struct Meeting {
  // As in GraphMeeting.
  std::string name;
  std::optional<int64_t> step;
  // Starts of those that are waited for, and ends of those that wait. In an all-reduce both are
  // everybody; of a broadcast's leaf they are root and leaf, and the leaf alone.
  std::vector<RankNode> arrivals;
  std::vector<RankNode> departures;
};

// The graph of one rank, as trace_graph.h builds it: node 0 is the window's start, and there is an
// end node; every edge runs forward in time, and of the edges into a node one stands for all the
// time between its ends.
struct RankGraph {
  int64_t rank = 0;
  PathGraph graph;
};

// Times are those of one clock.
struct JobGraph {
  // By rank.
  std::vector<RankGraph> ranks;
  std::vector<Meeting> meetings;
};

struct JoinedGraph {
  PathGraph graph;
  // Ends that come before a meeting was complete: clocks that disagree. They do not wait for it.
  int64_t against_time = 0;
};

// Joins all ranks. The window lasts from the first start to the last end of the ranks' windows; the
// time until a rank's own window begins is a host gap. OutOfRange when the ranks lie too far apart,
// or have too many nodes, to be counted.
absl::StatusOr<JoinedGraph> JoinRanks(JobGraph job);

// Returns the graph of one rank, by its position, in which waiting for others is told apart.
absl::StatusOr<JoinedGraph> ShowWaits(JobGraph job, size_t rank);

}  // namespace meridian

#endif  // CRITICAL_PATH_RANK_JOIN_H_
