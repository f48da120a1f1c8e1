// SPDX-License-Identifier: Apache-2.0
// The runs that calibrations are made from, and held against.
#ifndef TOOLS_PIPELINE_MEASURED_RUNS_H_
#define TOOLS_PIPELINE_MEASURED_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/calibration/transfers.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Reads profiles as ReadCalibrationRuns does, with a progress bar that is gone when it returns.
absl::StatusOr<std::vector<CalibrationRun>> ReadMeasuredRuns(FileSystem& file_system,
                                                             const std::vector<std::string>& traces,
                                                             const InputFileOptions& input,
                                                             bool allow_violations);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_MEASURED_RUNS_H_
