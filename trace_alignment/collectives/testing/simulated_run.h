// SPDX-License-Identifier: Apache-2.0
// A made-up run of many nodes whose clocks are off by known amounts. In each execution every rank
// computes for a while, then communicates; the kinds take turns:
//
//   all-reduce of all, all-gather in groups of neighbours, permute around the ring, broadcast from
//   the last rank, reduce to the last rank
#ifndef TRACE_ALIGNMENT_COLLECTIVES_TESTING_SIMULATED_RUN_H_
#define TRACE_ALIGNMENT_COLLECTIVES_TESTING_SIMULATED_RUN_H_

#include <cstdint>
#include <random>
#include <vector>

#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/testing/true_clock.h"

namespace meridian {

struct SimulatedRunOptions {
  uint32_t nodes = 4;
  uint32_t devices_per_node = 1;
  int64_t executions = 100;
  // Only the first of the kinds above.
  bool all_reduce_only = false;
  // Compute times and transfers lie between 0 and these.
  int64_t max_compute_ps = 300'000'000;
  int64_t max_transfer_ps = 100'000'000;
};

// Events are timed by the clocks, one per node.
RunBuilder SimulateRun(const SimulatedRunOptions& options, const std::vector<TrueClock>& clocks,
                       std::mt19937_64* random);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_COLLECTIVES_TESTING_SIMULATED_RUN_H_
