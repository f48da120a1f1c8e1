// SPDX-License-Identifier: Apache-2.0
// The model of a whole code, fitted to measured runs: all of its transitions and messages, how far
// totals may be off, and where single calls were traced how each class of ranks goes from call to call.
#ifndef WORKLOAD_MODEL_CALLS_WORKLOAD_FIT_H_
#define WORKLOAD_MODEL_CALLS_WORKLOAD_FIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

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

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_WORKLOAD_FIT_H_
