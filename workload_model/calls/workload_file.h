// SPDX-License-Identifier: Apache-2.0
// The model of a whole code, fitted to measured runs: all of its transitions and messages, how far
// totals may be off, and where single calls were traced how each class of ranks goes from call to call.
//
// And files of models: the one that workload_model fit writes, and those of the Ember motif; and models
// and what follows from them as text for people.
#ifndef WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_
#define WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

inline constexpr absl::string_view kWorkloadModelFormat = "meridian workload model 1";

// Each kind of cells (threads, ranks per machine, class of ranks) has models of its own. `models` is
// "auto", or the type of all models of times (curve_fit.h: FitType), `order` that of polynomials, 1 to
// 4. InvalidArgument when nothing was measured, or a type that was asked for cannot be fitted, which
// names the transition.
absl::StatusOr<WorkloadModel> FitWorkload(const Measurements& measurements,
                                          const std::string& models = "auto", int order = 2);

// The same, of runs whose ranks are put into classes first; where their calls are known, with the
// control flow of each class.
absl::StatusOr<WorkloadModel> FitRuns(std::vector<RunMeasurements> runs,
                                      const std::string& models = "auto", int order = 2);

// Reads what ReportToJson writes of a WorkloadModel. InvalidArgument, which names the source, for
// anything else and for models, control flows and ranges that cannot be.
absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source);

// Returns the model as the file of that name holds it: its times in the form of the Ember motif
// (model_files.h) if it ends in .model, else all of it as JSON.
absl::StatusOr<std::string> WorkloadModelText(const WorkloadModel& model, absl::string_view path);

// Evaluates a model of any kind: such a file, or one of the Ember motif, `as_ember` by its own rules.
absl::StatusOr<WorkloadEvaluation> EvaluateFile(absl::string_view text, const std::string& source,
                                                const WorkloadCell& cell, bool as_ember);

std::string FormatWorkloadModel(const WorkloadModel& model);
std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation);
std::string FormatWorkloadComparison(const WorkloadComparison& comparison);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_
