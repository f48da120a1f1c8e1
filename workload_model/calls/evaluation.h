// SPDX-License-Identifier: Apache-2.0
// What the model of a code predicts for one cell, how far that may be off, and how it compares with what
// was measured.
#ifndef WORKLOAD_MODEL_CALLS_EVALUATION_H_
#define WORKLOAD_MODEL_CALLS_EVALUATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// What is assumed of log(total) where nothing can be left out of the fit.
inline constexpr double kAssumedDeviation = 0.2;

// Returns "1 thread", or "2 threads of each of 4 ranks per node".
std::string KindText(const CellKind& kind);

// Returns how often a transition is taken in a cell, and how long the first time and the others.
CellValue PredictCall(const CallModel& call, const WorkloadCell& cell);

// Returns how far a cell lies outside of what was measured: doublings of machines and of the problem,
// whose size is a power of two where it is not linear.
double DoublingsOutside(const WorkloadCell& cell, const FittedKind& kind);

// InvalidArgument, which names the flag, for a cell that nobody can ask for.
absl::Status CheckAskedCell(const WorkloadCell& cell);

// The total is the sum over transitions of count times mean time, of the class of ranks that takes
// longest; of one class, if the cell's kind names it (it may be empty). NotFound for numbers of threads
// and ranks per machine that were not measured, InvalidArgument where the prediction is no finite number.
absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell);

// Evaluates the models of a file of the Ember motif (model_files.h), which has no counts: each is shown
// for itself, by our rules or, `as_ember`, by those of the motif.
absl::StatusOr<WorkloadEvaluation> EvaluateModelFile(const std::vector<CallModel>& models,
                                                     const WorkloadCell& cell, bool as_ember);

// The value of one of a call's models; InvalidArgument, which names the callsite, when it is no finite
// number.
absl::StatusOr<double> FiniteValue(const CallModel& call, const Model& model,
                                   const WorkloadCell& cell);

// Compares predictions with measurements, of which the model may or may not have known. A transition
// without a model is predicted to take no time.
absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_EVALUATION_H_
