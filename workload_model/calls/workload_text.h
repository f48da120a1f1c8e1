// SPDX-License-Identifier: Apache-2.0
// Models, evaluations and comparisons as text for people.
#ifndef WORKLOAD_MODEL_CALLS_WORKLOAD_TEXT_H_
#define WORKLOAD_MODEL_CALLS_WORKLOAD_TEXT_H_

#include <string>

#include "workload_model/workload_model.pb.h"

namespace meridian {

std::string FormatWorkloadModel(const WorkloadModel& model);
std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation);
std::string FormatWorkloadComparison(const WorkloadComparison& comparison);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_WORKLOAD_TEXT_H_
