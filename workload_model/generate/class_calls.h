// SPDX-License-Identifier: Apache-2.0
// The calls that each rank of a class makes in one cell, one after the other: the control flow, walked.
#ifndef WORKLOAD_MODEL_GENERATE_CLASS_CALLS_H_
#define WORKLOAD_MODEL_GENERATE_CLASS_CALLS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// One call of a class of ranks.
struct Visit {
  const CallsiteModel* callsite = nullptr;
  CallOperation operation;
  // The computation before the call.
  int64_t compute_ns = 0;
  int64_t bytes = 0;
  // How often the callsite was visited, as its rule of peers counts.
  int64_t number = 0;

  bool Sends() const {
    return callsite->has_peer() && (operation.kind == CallOperation::Kind::kSend ||
                                    operation.kind == CallOperation::Kind::kSendReceive);
  }
};

struct ClassCalls {
  EvaluatedFlow evaluated;
  std::vector<Visit> visits;

  double ComputeUs() const;
};

// FailedPrecondition when the flow comes to a callsite of which nothing is known, or to no end.
absl::StatusOr<ClassCalls> WalkClass(EvaluatedFlow evaluated);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_GENERATE_CLASS_CALLS_H_
