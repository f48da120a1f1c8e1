// SPDX-License-Identifier: Apache-2.0
// Whole steps of runs, simulated with the calibrated network.
#ifndef PIPELINE_STEP_SIMULATION_H_
#define PIPELINE_STEP_SIMULATION_H_

#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/step_check.h"
#include "astra_bridge/calibration/transfers.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct StepSimulationOptions {
  InputFileOptions input;
  bool allow_violations = false;
  // Steps are exported one by one; so many of a run are enough to see.
  size_t max_steps = 16;
};

// Adds steps and notes to the report. A step that cannot be exported or simulated is a note: the collectives are checked all the same. An error of the
// environment is an error.
absl::Status SimulateSteps(FileSystem& file_system, const std::vector<CalibrationRun>& runs,
                           const StepModel& model, const StepSimulationOptions& options,
                           SimulationCheckReport* report);

}  // namespace meridian

#endif  // PIPELINE_STEP_SIMULATION_H_
