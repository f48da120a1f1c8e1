// SPDX-License-Identifier: Apache-2.0
// The model of a whole code: all of its transitions and messages, what it predicts and how far that
// may be off.
#ifndef WORKLOAD_MODEL_WORKLOAD_H_
#define WORKLOAD_MODEL_WORKLOAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/measurements.h"
#include "workload_model/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

struct WorkloadFitOptions {
  // "auto", or the type of all models of times (curve_fit.h: FitType).
  std::string models = "auto";
  // Of polynomials.
  int order = 2;
};

// Each kind of cells (threads, ranks per node, class of ranks) has models of its own. InvalidArgument when nothing was
// measured, or a type that was asked for can not be fitted, which names the transition.
absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const WorkloadFitOptions& options);

// The same, of runs whose ranks are put into classes first; where their calls are known, with the
// control flow of each class.
absl::StatusOr<WorkloadModel> FitRuns(std::vector<RunMeasurements> runs,
                                      const WorkloadFitOptions& options);

// The total is the sum over transitions of count times mean time, of the class of ranks that takes
// longest; of one class, if the cell's kind names it (it may be empty). Numbers of threads and ranks per
// node that were not measured are answered by a power of those that were; NotFound when only one was.
// InvalidArgument where the prediction is no finite number.
absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell);

// The value of one of a call's models; InvalidArgument, which names the callsite, when it is no finite
// number.
absl::StatusOr<double> FiniteValue(const CallModel& call, const Model& model,
                                   const WorkloadCell& cell);

// Compares predictions with measurements, of which the model may or may not have known. Transitions
// without a model are noted.
absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements);

// Reads what ReportToJson writes of a WorkloadModel. InvalidArgument, which names the source, for
// anything else and for models that fail CheckModel.
absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source);

std::string FormatWorkloadModel(const WorkloadModel& model);
std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation);
std::string FormatWorkloadComparison(const WorkloadComparison& comparison);
// One row for each cell.
std::string WorkloadComparisonCsv(const WorkloadComparison& comparison);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_WORKLOAD_H_
