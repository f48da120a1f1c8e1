// SPDX-License-Identifier: Apache-2.0
// Files of models: the one that workload_model fit writes, and those of the Ember motif.
#ifndef WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_
#define WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload_model/models/models.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

inline constexpr absl::string_view kWorkloadModelFormat = "meridian workload model 1";

// Reads what ReportToJson writes of a WorkloadModel. InvalidArgument, which names the source, for
// anything else and for models, control flows and ranges that cannot be.
absl::StatusOr<WorkloadModel> ParseWorkloadModel(absl::string_view json, absl::string_view source);

// Returns the model as the file of that name holds it: its times in the form of the Ember motif
// (model_files.h) if it ends in .model, else all of it as JSON.
absl::StatusOr<std::string> WorkloadModelText(const WorkloadModel& model, absl::string_view path);

// Evaluates a model of any kind: such a file, or one of the Ember motif, `as_ember` by its own rules.
absl::StatusOr<WorkloadEvaluation> EvaluateFile(absl::string_view text, const std::string& source,
                                                const WorkloadCell& cell, bool as_ember);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_WORKLOAD_FILE_H_
