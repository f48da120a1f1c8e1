// SPDX-License-Identifier: Apache-2.0
// A calibrated network as commands name it: the folder that astra_calibrate writes with
// --calibration=DIR, its files one by one, or both, when single flags replace files of the folder.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_FILES_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Paths; empty for what is not given.
struct CalibrationFiles {
  // AstraSim's YAML and its system JSON.
  std::string network = {};
  std::string system = {};
  std::string corrections = {};
  // The report of astra_calibrate.
  std::string report = {};
  // The network of the folder, where another is named in its place: how far predictions may be off
  // on that, nobody measured. Links may be multiples of it.
  std::string calibrated_network = {};

  std::vector<std::string> All() const {
    return {network, system, corrections, report, calibrated_network};
  }
};

// Returns where the files of a calibration lie in its folder.
CalibrationFiles FilesOfCalibration(const std::string& folder);

// Returns the files that flags name: those of the folder unless a single flag names another. A
// calibration that is a file is the report alone. `given` are the single flags. NotFound for a
// folder that lacks a file of a calibration.
absl::StatusOr<CalibrationFiles> NamedCalibration(FileSystem& file_system,
                                                  const std::string& calibration,
                                                  CalibrationFiles given);

// Returns the files that a simulation of PREFIX.<rank>.et reads, and those of its network, none of
// which may be an output.
absl::StatusOr<std::vector<std::string>> SimulationInputs(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          std::vector<std::string> network);

// Writes what a path is given for; no file is replaced before all are on the disk.
absl::Status WriteCalibration(FileSystem& file_system, const Calibration& calibration,
                              const CalibrationFiles& paths);

// Parses the JSON that astra_calibrate --report has written. Errors name the source.
absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source);

// Reads a report of astra_calibrate. Errors name the file.
absl::StatusOr<CalibrationReport> ReadCalibrationReport(FileSystem& file_system,
                                                        const std::string& path);

// A network as flags name it, and what a calibration knows of it.
struct NamedNetwork {
  // Without corrections, or with an empty report, where these are not named.
  Calibration calibration;
  bool is_corrected = false;
  // The network is that of the calibration: what was measured there may be compared with it.
  bool is_measured = false;
  // How far predictions may be off: not known without corrections, without a report, and on another
  // network.
  PredictionIntervals intervals;
  // For the user to read.
  std::vector<std::string> notes;
};

// What is said where the network is not that of a calibration, and the traces have measured times.
inline constexpr char kNotMeasuredHere[] =
    "measured times are left out: the traces may come from another network; give --calibration of "
    "the one they were recorded on to compare, or ask forecast what another network changes";

// Reads the network and all else that is named. Links that are multiples of the calibrated network
// get their values, and corrections lose their ratios there. `with_computation` as in ReadFabric.
absl::StatusOr<NamedNetwork> ReadNetwork(FileSystem& file_system, const CalibrationFiles& files,
                                         bool with_computation = false);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_FILES_H_
