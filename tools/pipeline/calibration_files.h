// SPDX-License-Identifier: Apache-2.0
// A calibrated network as commands name it: the folder that astra_calibrate writes with
// --calibration=DIR, its files one by one, or both, when single flags replace files of the folder.
#ifndef TOOLS_PIPELINE_CALIBRATION_FILES_H_
#define TOOLS_PIPELINE_CALIBRATION_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Paths; empty for what is not given.
struct CalibrationFiles {
  // AstraSim's YAML and its system JSON.
  std::string network;
  std::string system;
  std::string corrections;
  // The report of astra_calibrate.
  std::string report;

  std::vector<std::string> All() const { return {network, system, corrections, report}; }
};

// Returns where the files of a calibration lie in its folder.
CalibrationFiles FilesOfCalibration(const std::string& folder);

// Returns the files that flags name: those of the folder unless a single flag names another. A
// calibration that is a file is the report alone. `given` are the single flags. NotFound for a
// folder that lacks a file of a calibration.
absl::StatusOr<CalibrationFiles> NamedCalibration(FileSystem& file_system,
                                                  const std::string& calibration,
                                                  CalibrationFiles given);

// The same for comma lists, to compare several networks: each names one for all of them, or one for
// each. At least one is returned. InvalidArgument when lists have different lengths.
absl::StatusOr<std::vector<CalibrationFiles>> NamedCalibrations(FileSystem& file_system,
                                                                const std::string& calibrations,
                                                                const CalibrationFiles& given);

}  // namespace meridian

#endif  // TOOLS_PIPELINE_CALIBRATION_FILES_H_
