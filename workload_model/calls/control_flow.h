// SPDX-License-Identifier: Apache-2.0
// How a code goes from callsite to callsite, learnt from what it did.
//
//   measured at 9 ranks    1 2 3 47 47 50 1 2 3 47 47 50        after 47 comes 47 twice, then 50
//   measured at 16 ranks   1 2 3 47 47 47 50 1 2 ...            three times: sqrt n - 1
//
// A first-order Markov chain knows that 50 follows 47 in a third of all cases, and makes loops of any
// length. Here each branch is explained by what tells it best: by how often its callsite was visited
// since the last visit of another one (trip counts, which are models of ranks and size, and what
// happens the first, second, third time), or by the callsites that came before. The explanation that
// needs the fewest bits, its own included, counts (Bayes' information criterion). What remains open
// is drawn, once for all ranks.
#ifndef WORKLOAD_MODEL_CALLS_CONTROL_FLOW_H_
#define WORKLOAD_MODEL_CALLS_CONTROL_FLOW_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// Callsites in the order of their calls, for each cell of ranks (WorkloadCell::InRanks) and each run;
// none is empty, none holds 0.
using CallSequences = std::map<WorkloadCell, std::vector<std::vector<int64_t>>>;

// Returns the flow without callsites() and rank_class(). InvalidArgument when runs begin at different
// callsites.
absl::StatusOr<ControlFlow> LearnControlFlow(const CallSequences& sequences);

// In place of a callsite: where a run ends, and what comes before its first call.
inline constexpr int64_t kNoCallsite = 0;
// A branch looks back at most so many callsites.
inline constexpr int kMaxContext = 3;

// Returns how many visits, or iterations, a model means: a whole number.
int64_t WholeVisits(const Model& model, const WorkloadCell& cell);

// InvalidArgument for a flow that WalkControlFlow could not follow, as hands may have made it.
absl::Status CheckControlFlow(const ControlFlow& flow);

// Returns the callsites that the code visits in that cell. The same seed gives the same draws.
// FailedPrecondition when there are more than `most`, or where the flow does not say how to go on.
absl::StatusOr<std::vector<int64_t>> WalkControlFlow(const ControlFlow& flow,
                                                     const WorkloadCell& cell, uint64_t seed,
                                                     int64_t most);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_CONTROL_FLOW_H_
