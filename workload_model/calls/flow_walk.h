// SPDX-License-Identifier: Apache-2.0
// A control flow (control_flow.h) followed from callsite to callsite. Loops depend on the number of
// ranks: cells are those of ranks (WorkloadCell::InRanks).
#ifndef WORKLOAD_MODEL_CALLS_FLOW_WALK_H_
#define WORKLOAD_MODEL_CALLS_FLOW_WALK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

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

#endif  // WORKLOAD_MODEL_CALLS_FLOW_WALK_H_
