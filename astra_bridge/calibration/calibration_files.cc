#include "astra_bridge/calibration/calibration_files.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/command_line/command_line.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
CalibrationFiles FilesOfCalibration(const std::string& folder) {
  const auto in_folder = [&](absl::string_view name) {
    return absl::StrCat(absl::StripSuffix(folder, "/"), "/", name);
  };
  return {in_folder("network.yml"), in_folder("system.json"), in_folder("corrections.json"),
          in_folder("calibration.json")};
}

absl::StatusOr<CalibrationFiles> NamedCalibration(FileSystem& file_system,
                                                  const std::string& calibration,
                                                  CalibrationFiles given) {
  if (calibration.empty()) return given;
  ASSIGN_OR_RETURN(const FileKind kind, file_system.Kind(calibration));
  if (kind != FileKind::kDirectory) {
    given.report = calibration;
    return given;
  }
  const CalibrationFiles found = FilesOfCalibration(calibration);
  if (!given.network.empty() && std::filesystem::path(given.network).lexically_normal() !=
                                    std::filesystem::path(found.network).lexically_normal()) {
    given.calibrated_network = found.network;
  }
  for (const auto file : {&CalibrationFiles::network, &CalibrationFiles::system,
                          &CalibrationFiles::corrections, &CalibrationFiles::report}) {
    if (!(given.*file).empty()) continue;
    if (!file_system.Kind(found.*file).ok()) {
      return NotFound(Printable(found.*file),
                      ": there is no such file; --calibration expects the folder that "
                      "astra_calibrate --calibration=DIR has written");
    }
    given.*file = found.*file;
  }
  return given;
}

absl::StatusOr<std::vector<std::string>> SimulationInputs(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          std::vector<std::string> network) {
  for (const char* suffix : {".*.et", ".*.et.gz", ".comm_groups.json"}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found,
                     file_system.Glob(absl::StrCat(prefix, suffix)));
    network.insert(network.end(), found.begin(), found.end());
  }
  return network;
}

absl::Status WriteCalibration(FileSystem& file_system, const Calibration& calibration,
                              const CalibrationFiles& paths) {
  OutputFiles outputs(file_system);
  if (!paths.network.empty()) {
    ASSIGN_OR_RETURN(const std::string network, NetworkConfigToYaml(calibration.fabric.network));
    RETURN_IF_ERROR(outputs.WriteText("network", paths.network, network));
  }
  RETURN_IF_ERROR(
      outputs.WriteText("system", paths.system,
                        SystemConfigToJson(calibration.fabric.system, /*trace_enabled=*/false)));
  RETURN_IF_ERROR(outputs.WriteText("corrections", paths.corrections,
                                    CorrectionsToJson(calibration.corrections)));
  RETURN_IF_ERROR(outputs.WriteText("report", paths.report, ReportToJson(calibration.report)));
  return outputs.Commit();
}

absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source) {
  CalibrationReport report;
  const absl::Status status = ReportFromJson(json, &report);
  if (status.ok()) return report;
  return InvalidArgument(source,
                         ": this is no report of astra_calibrate, or one of another version; give "
                         "the file that astra_calibrate --report has written (",
                         status.message(), ")");
}

absl::StatusOr<CalibrationReport> ReadCalibrationReport(FileSystem& file_system,
                                                        const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path, UserInputOptions()));
  return ParseCalibrationReport(file.bytes(), path);
}

absl::StatusOr<NamedNetwork> ReadNetwork(FileSystem& file_system, const CalibrationFiles& files,
                                         bool with_computation) {
  if (files.network.empty()) {
    return InvalidArgument(
        "no network is given; use --network=network.yml, or --calibration=DIR as astra_calibrate "
        "writes it");
  }
  NamedNetwork named;
  auto& [fabric, corrections, report] = named.calibration;
  const bool is_other = !files.calibrated_network.empty();
  named.is_corrected = !files.corrections.empty();
  named.is_measured = named.is_corrected && !is_other;
  ASSIGN_OR_RETURN(fabric,
                   ReadFabric(file_system, {files.network, files.system, files.calibrated_network},
                              with_computation));
  if (!fabric.network.unknown_keys.empty()) named.notes.push_back(fabric.network.unknown_keys);
  if (named.is_corrected) {
    ASSIGN_OR_RETURN(corrections, ReadCorrections(file_system, files.corrections));
  }
  if (is_other && fabric.network.has_links()) {
    corrections = corrections.OnlyOverhead();
    named.notes.push_back(
        "on links, the calibration's bandwidth, latency and overhead are used, not its ratios");
  }
  if (files.report.empty()) return named;
  ASSIGN_OR_RETURN(report, ReadCalibrationReport(file_system, files.report));
  absl::StatusOr<PredictionIntervals> intervals = PredictionIntervals::FromReport(report);
  if (!intervals.ok()) return Annotate(intervals.status(), Printable(files.report));
  if (!named.is_measured) return named;
  named.intervals = *std::move(intervals);
  if (!named.intervals.empty()) return named;
  return InvalidArgument(Printable(files.report),
                         ": nothing was fitted in this calibration; give the file that "
                         "astra_calibrate --report has written");
}

}  // namespace meridian
