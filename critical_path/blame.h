// Who kept the others waiting, and by what.
//
//   rank 0  --mm, 100 us--[all-reduce . . waits 200 us . . . . transfer]
//   rank 1  ----host gap, 180 us----[launch, 20 us]--mm, 100 us--[all-reduce]
//   path    #####################################################
//   blame                 #######################################   200 us: gap 180, launch 20
//
// How much: each moment of a joined path (rank_join.h) that leads up to a meeting counts by the
// share of the others that had come to that meeting already. So the blame for a meeting is the mean
// time that the others waited, and no moment counts more than once. What the path was in before an
// earlier meeting is that meeting's matter: a rank that is late only because it waited itself is
// not to blame. Nor is it for a transfer that ends later on it than on others: all members are at
// it together. What a rank did before its own window is not known, and not blamed.
//
// By what: what the rank spent more time in, since the meeting before, than the others did on
// average; the blame is divided in proportion. A rank that slept and then computed as the others
// did is late because it slept, though it computed while the others waited.
#ifndef CRITICAL_PATH_BLAME_H_
#define CRITICAL_PATH_BLAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"

namespace meridian {

// One op of one rank in one step.
struct BlameRow {
  // Of the meeting, where the waiting shows; absent when the trace has no steps.
  std::optional<int64_t> step;
  int64_t rank = 0;
  // The event that the time is booked on, or what it is spent on when there is none.
  std::string op;
  int64_t time_ps = 0;
  // Of the largest part: what the time was spent on, and what the others waited in.
  BoundBy bound_by = BoundBy::kNothing;
  std::string waited_in;
};

struct RankBlame {
  int64_t rank = 0;
  // The sum of its rows.
  int64_t blamed_ps = 0;
  // In how many steps no other rank has more.
  int64_t steps_led = 0;
  // How long it waited itself, in all meetings, on the path or not.
  int64_t waited_ps = 0;
};

struct Blame {
  // The largest first. The sum is at most the path's length.
  std::vector<BlameRow> rows;
  // By rank: all that are in a meeting.
  std::vector<RankBlame> ranks;
};

// Empty for graphs without meetings.
Blame FindBlame(const PathGraph& graph, const CriticalPath& path);

// Returns a line for each row, with a title line.
std::string BlameCsv(const Blame& blame);

}  // namespace meridian

#endif  // CRITICAL_PATH_BLAME_H_
