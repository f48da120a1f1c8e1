// A made-up run of many nodes whose clocks are off by known amounts. In each execution every rank
// computes for a while, then communicates; the kinds take turns:
//
//   all-reduce of all, all-gather in groups of neighbours, permute around the ring, broadcast from
//   the last rank, reduce to the last rank
#ifndef TRACE_ALIGNMENT_COLLECTIVES_TESTING_SIMULATED_RUN_H_
#define TRACE_ALIGNMENT_COLLECTIVES_TESTING_SIMULATED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "trace_alignment/collectives/testing/run_builder.h"

namespace meridian {

// A clock that is ahead by an offset when true time is 0, and gains.
struct TrueClock {
  int64_t offset_ps = 0;
  int64_t drift_ppb = 0;

  // What it shows at a time within hours of 0.
  int64_t ShowsPs(int64_t true_ps) const;
  // By how much it is ahead when it shows time_ps.
  int64_t OffsetPs(int64_t time_ps) const;
};

// Offsets within +-50 ms and drifts within +-50 ppm, the first clock being right.
std::vector<TrueClock> RandomClocks(size_t count, std::mt19937_64* random);

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
