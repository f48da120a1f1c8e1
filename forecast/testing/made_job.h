// SPDX-License-Identifier: Apache-2.0
// A job whose every step computes, then reduces among all ranks:
//
//   rank 0   | compute |all-reduce . . .| compute |all-reduce ...
//   rank 1   | compute |all-reduce . . .| compute |all-reduce ...
#ifndef FORECAST_TESTING_MADE_JOB_H_
#define FORECAST_TESTING_MADE_JOB_H_

#include <cstdint>

#include "critical_path/graph/path_graph.h"

namespace meridian {

struct MadeJob {
  int32_t ranks = 4;
  int64_t steps = 4;
  int64_t compute_us = 1000;
  int64_t transfer_us = 3000;
  int64_t bytes = 1'000'000;
  CollectiveKind kind = CollectiveKind::kAllReduce;
};

PathGraph MakeJobGraph(const MadeJob& job);

}  // namespace meridian

#endif  // FORECAST_TESTING_MADE_JOB_H_
