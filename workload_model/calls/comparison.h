// SPDX-License-Identifier: Apache-2.0
// Predictions beside what was measured.
#ifndef WORKLOAD_MODEL_CALLS_COMPARISON_H_
#define WORKLOAD_MODEL_CALLS_COMPARISON_H_

#include "absl/status/statusor.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// Compares predictions with measurements, of which the model may or may not have known. Transitions
// without a model are noted.
absl::StatusOr<WorkloadComparison> CompareWorkload(const WorkloadModel& model,
                                                   const Measurements& measurements);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_COMPARISON_H_
