// SPDX-License-Identifier: Apache-2.0
// The graph of a job whose ranks do one thing and then meet in an all-reduce:
//
//   rank 0   | gap | op | launch |all-reduce . . . . |
//   rank 1   |   gap   |    op     | launch |all-reduce|
//                                           meeting + 20 us
#ifndef CRITICAL_PATH_WHAT_IF_TESTING_ALL_REDUCE_JOB_H_
#define CRITICAL_PATH_WHAT_IF_TESTING_ALL_REDUCE_JOB_H_

#include <cstdint>
#include <vector>

#include "critical_path/graph/path_graph.h"

namespace meridian {

// What a rank needs for each part, in microseconds.
struct RankTimes {
  int64_t gap_us = 0;
  int64_t op_us = 0;
  int64_t launch_us = 0;
};

inline constexpr int64_t kTransferUs = 20;

// Ranks count from 0. On each the op is event 0 of its file, the all-reduce event 1.
PathGraph AllReduceJob(const std::vector<RankTimes>& ranks);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_TESTING_ALL_REDUCE_JOB_H_
