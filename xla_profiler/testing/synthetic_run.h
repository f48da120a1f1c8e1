// SPDX-License-Identifier: Apache-2.0
// A made-up run of several ranks whose true times are known, one profile per rank, in the form that
// JAX writes on GPUs:
//
//   /host:metadata    module jit_step with its HLO
//   /device:GPU:0     Stream #14: loop_add_fusion, then the NCCL kernel of all-reduce.2, each step
//   /host:CPU         python3: Execute (run_id, replica, partition) around two thunks and launches
//   Task Environment  start and stop of the session
//
// All ranks share one clock; their sessions begin at different times. In every step rank r computes
// for compute_ns + r * straggle_ns; the all-reduce starts on a rank when its kernel has ended, and
// ends everywhere transfer_ns after the last rank has started it.
#ifndef XLA_PROFILER_TESTING_SYNTHETIC_RUN_H_
#define XLA_PROFILER_TESTING_SYNTHETIC_RUN_H_

#include <cstdint>
#include <vector>

#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

struct SyntheticRunOptions {
  int ranks = 2;
  int steps = 3;
  // Unix time at which rank 0's session begins; rank r's begins r * session_spread_ns later.
  int64_t start_ns = 1794701451406144825;
  int64_t session_spread_ns = 1500000;
  int64_t step_period_ns = 1000000;
  int64_t compute_ns = 100000;
  int64_t straggle_ns = 10000;
  int64_t transfer_ns = 50000;
  // Elements of the f32 array that is reduced.
  int64_t elements = 1024;
};

std::vector<XSpaceProto> SyntheticRun(const SyntheticRunOptions& options);

// The true Unix times of a rank's all-reduce in a step.
struct TrueCollective {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};
TrueCollective TrueAllReduce(const SyntheticRunOptions& options, int rank, int step);

// The run_id of a step, equal on all ranks.
int64_t SyntheticRunId(int step);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_SYNTHETIC_RUN_H_
