// SPDX-License-Identifier: Apache-2.0
// The model of a whole code: all of its transitions and messages, what it predicts and how far that
// may be off.
#ifndef WORKLOAD_MODEL_WORKLOAD_H_
#define WORKLOAD_MODEL_WORKLOAD_H_

#include <string>

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

// Threads are a key: each number of threads has models of its own. InvalidArgument when nothing was
// measured, or a type that was asked for can not be fitted, which names the transition.
absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const WorkloadFitOptions& options);

// The total is the sum over transitions of count times mean time. NotFound when there are no models
// of that many threads. InvalidArgument where the prediction is no finite number.
absl::StatusOr<WorkloadEvaluation> EvaluateWorkload(const WorkloadModel& model,
                                                    const WorkloadCell& cell);

// Compares predictions with measurements, of which the model may or may not have known. Transitions
// without a model are noted.
absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements);

// Reads what ReportToJson writes of a WorkloadModel. InvalidArgument, which names the source, for
// anything else and for models that fail CheckModel.
absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source);

// Returns for each callsite whether its messages grow or shrink with nodes and size, in their order.
std::vector<std::pair<int64_t, bool>> FindVaryingMessages(const Measurements& measurements);

std::string FormatWorkloadModel(const WorkloadModel& model);
std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation);
std::string FormatWorkloadComparison(const WorkloadComparison& comparison);
// One row for each cell.
std::string WorkloadComparisonCsv(const WorkloadComparison& comparison);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_WORKLOAD_H_
