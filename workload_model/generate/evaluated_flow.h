// SPDX-License-Identifier: Apache-2.0
// What the calls of one class of ranks do and cost in one cell: the models evaluated, and the control
// flow walked.
#ifndef WORKLOAD_MODEL_GENERATE_EVALUATED_FLOW_H_
#define WORKLOAD_MODEL_GENERATE_EVALUATED_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// Branches that are drawn are drawn with this seed, the same for all ranks.
inline constexpr uint64_t kBranchSeed = 1;

struct EvaluatedFlow {
  // What happens between two calls, the first time and later; without the call at its end, where it is
  // known how long that took.
  struct Times {
    int64_t first_ns = 0;
    int64_t steady_ns = 0;
    // How `steady_ns` changes from the beginning of the run to its end, as a part of it.
    double drift = 0;
  };

  // FailedPrecondition when the model does not say what the callsite does.
  absl::StatusOr<const CallsiteModel*> CallsiteOf(int64_t callsite) const;
  // Nothing for transitions, and calls, that were not measured.
  Times TimesOf(const Transition& transition) const;
  int64_t BytesOf(int64_t callsite) const;

  const ControlFlow* flow = nullptr;
  // The cell of ranks (WorkloadCell::InRanks), on which the flow depends.
  WorkloadCell cell_of_ranks;
  std::map<Transition, Times> times;
  // What calls took when they were measured, and how many bytes they move, by callsite.
  std::map<int64_t, int64_t> call_ns;
  std::map<int64_t, int64_t> bytes;
  std::map<int64_t, const CallsiteModel*> callsites;
  // False when nobody measured how long calls took: times contain them.
  bool has_call_times = true;
};

// `cell` is taken for the flow's class of ranks. NotFound when there are no models of its threads and
// ranks per machine; FailedPrecondition for a callsite whose groups or peers are not known;
// InvalidArgument when a model, also of how the flow goes on, is no finite number. The flow must
// outlive the result.
absl::StatusOr<EvaluatedFlow> EvaluateFlow(const WorkloadModel& model, const ControlFlow& flow,
                                           WorkloadCell cell);

// The flows of all classes that the ranks of a cell have.
struct EvaluatedRanks {
  // The classes in the order of their first ranks; names and flows, one of each.
  std::vector<std::string> classes;
  std::vector<EvaluatedFlow> flows;
  // The position of its class, by rank.
  std::vector<size_t> class_of;
};

// InvalidArgument when the ranks are no whole number up to `most_ranks`, FailedPrecondition when the
// rule of classes, or the model, says nothing about some; and as EvaluateFlow.
absl::StatusOr<EvaluatedRanks> EvaluateRanks(const WorkloadModel& model, const WorkloadCell& cell,
                                             int64_t most_ranks);

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

#endif  // WORKLOAD_MODEL_GENERATE_EVALUATED_FLOW_H_
