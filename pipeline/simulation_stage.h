// SPDX-License-Identifier: Apache-2.0
// A network calibrated with what was measured, and how well it simulates the run.
#ifndef PIPELINE_SIMULATION_STAGE_H_
#define PIPELINE_SIMULATION_STAGE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/transfers.h"
#include "critical_path/graph/path_graph.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct SimulationStageRequest {
  // Profiles of the run, on one clock.
  std::vector<std::string> traces;
  // What these hold, where that was read already; else null.
  const absl::StatusOr<CalibrationRun>* run = nullptr;
  // Those of a sweep on the same machine; empty to calibrate with the run's own collectives.
  std::vector<std::string> sweep;
  // The graph of the run, for forecasts; it is emptied. May be null.
  PathGraph* graph = nullptr;
  // What is asked of a rank that others wait for; may be null.
  const WhatIfPart* late_rank = nullptr;
  // Where the calibration goes (calibration_files.h).
  std::string calibration_folder;
  InputFileOptions input;
  // Told how many models of how many are fitted; may be null.
  std::function<void(size_t done, size_t models)> progress;
};

// Calibrates, simulates, compares, and fills in the report's simulation. A run whose collectives are
// too few to calibrate with is no error: the report's findings say what is missing.
absl::Status DescribeSimulation(FileSystem& file_system, const SimulationStageRequest& request,
                                RunReport* report);

}  // namespace meridian

#endif  // PIPELINE_SIMULATION_STAGE_H_
