// SPDX-License-Identifier: Apache-2.0
// A made-up breadth-first search on a square of ranks, traced as A-mpiP does: what is known of its
// control flow, groups, peers, bytes and times is to be found again.
//
//   per root   1 all-reduce of all, 2 all-gather of the column, 3 exchange with the transposed rank;
//              then levels: 4 broadcast in the row, 5 and 6 exchange around the row sqrt n - 1 times
//              (5 with the next one, 6 with one further each time), 7 all-to-all of the row, 8 all-reduce of
//              all; two levels, a third one in seven of ten cases; 9 barrier
#ifndef WORKLOAD_MODEL_TESTING_MADE_UP_SEARCH_H_
#define WORKLOAD_MODEL_TESTING_MADE_UP_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "workload_model/measurements/measurements.h"

namespace meridian {

struct MadeUpSearch {
  int64_t root_of_ranks = 2;
  double size = 16;
  int roots = 20;
  uint64_t seed = 1;
};

// Returns the trace of a rank, as A-mpiP writes it.
std::string SearchTrace(const MadeUpSearch& search, int64_t rank);

// Returns what all ranks measured, with the times of the calls themselves.
std::vector<RunMeasurements> SearchRuns(const MadeUpSearch& search);

// Returns the same of searches of three sizes, for each of these roots of the number of ranks.
std::vector<RunMeasurements> SearchesOf(const std::vector<int64_t>& roots);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_TESTING_MADE_UP_SEARCH_H_
