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
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/network_config.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct Calibration;

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
  // What sets it apart from the others of a list, as the user named it.
  std::string name = {};

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

// The same for comma lists of folders and files, to compare several networks: each names one for
// all of them, or one for each. At least one is returned. InvalidArgument when lists have different
// lengths, or nothing between two commas, and for a calibration that is a file.
absl::StatusOr<std::vector<CalibrationFiles>> NamedCalibrations(FileSystem& file_system,
                                                                const std::string& calibrations,
                                                                const CalibrationFiles& given);

// Returns the files that a simulation of PREFIX.<rank>.et on these networks reads, none of which may
// be an output.
absl::StatusOr<std::vector<std::string>> SimulationInputs(
    FileSystem& file_system, const std::string& prefix,
    const std::vector<CalibrationFiles>& networks);

// Writes what a path is given for; no file is replaced before all are on the disk.
absl::Status WriteCalibration(FileSystem& file_system, const Calibration& calibration,
                              const CalibrationFiles& paths);

// Parses the JSON that astra_calibrate --report has written. Errors name the source.
absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source);

// Reads a report of astra_calibrate. Errors name the file.
absl::StatusOr<CalibrationReport> ReadCalibrationReport(FileSystem& file_system,
                                                        const std::string& path);

// Brings a network that is named in place of the calibration's together with the calibration: links
// that are multiples get their values. On links the ratios of corrections have no meaning, because
// there messages share what AstraSim's shapes give to each; the overhead stays. Returns a note that
// says so, or "".
absl::StatusOr<std::string> ApplyToLinks(FileSystem& file_system, const CalibrationFiles& files,
                                         NetworkConfig* network, Corrections* corrections);

// Returns how far predictions with these files may be off: not known without corrections, without
// a report, and on another network.
absl::StatusOr<PredictionIntervals> ReadIntervals(FileSystem& file_system,
                                                  const CalibrationFiles& files);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_FILES_H_
