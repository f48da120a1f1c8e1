// SPDX-License-Identifier: Apache-2.0
// Writes calibrations. (calibration_files.h reads them, for programs that must start fast and do not
// calibrate.)
#ifndef TOOLS_PIPELINE_CALIBRATION_OUTPUT_H_
#define TOOLS_PIPELINE_CALIBRATION_OUTPUT_H_

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration.h"
#include "tools/pipeline/calibration_files.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Writes what a path is given for; no file is replaced before all are on the disk.
absl::Status WriteCalibration(FileSystem& file_system, const Calibration& calibration,
                              const CalibrationFiles& paths);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_CALIBRATION_OUTPUT_H_
