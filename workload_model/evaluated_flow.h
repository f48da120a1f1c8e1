// SPDX-License-Identifier: Apache-2.0
// What the calls of one class of ranks do and cost in one cell: the models, evaluated.
#ifndef WORKLOAD_MODEL_EVALUATED_FLOW_H_
#define WORKLOAD_MODEL_EVALUATED_FLOW_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/call_operation.h"
#include "workload_model/measurements.h"
#include "workload_model/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

struct EvaluatedFlow {
  // What happens between two calls, the first time and later; without the call at its end, where it is
  // known how long that took.
  struct Times {
    int64_t first_ns = 0;
    int64_t steady_ns = 0;
  };
  std::map<Transition, Times> times;
  // By callsite: what the call itself took when it was measured, and what it moves.
  std::map<int64_t, int64_t> call_ns;
  std::map<int64_t, int64_t> bytes;
  std::map<int64_t, const CallsiteModel*> callsites;
  // False when nobody measured how long calls took: times contain them.
  bool has_call_times = true;
};

// `cell` is taken for the flow's class of ranks. NotFound when there are no models of its threads and
// ranks per node; FailedPrecondition for a callsite whose groups or peers are not known; InvalidArgument
// when a model, also of how the flow goes on, is no finite number. The flow must outlive the result.
absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell);

// Returns the flow of a class. FailedPrecondition when there is none.
absl::StatusOr<const ControlFlow*> FlowOf(const WorkloadModel& model, absl::string_view rank_class);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_EVALUATED_FLOW_H_
