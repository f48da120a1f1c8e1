#include "astra_bridge/calibration/calibration_files.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "astra_bridge/calibration/calibration.h"
#include "astra_bridge/engine/links_config.h"
#include "astra_bridge/sidecar/astra_files.h"
#include "xla_profiler/base/command_line/user_paths.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns the parts of a comma list as the user meant them.
absl::StatusOr<std::vector<std::string>> PathsOf(absl::string_view flag, const std::string& list) {
  std::vector<std::string> paths;
  if (list.empty()) return paths;
  for (absl::string_view path : absl::StrSplit(list, ',')) {
    if (path.empty()) {
      return InvalidArgument("--", flag,
                             " has nothing between two commas, or at an end; name one for all "
                             "networks, or one for each");
    }
    paths.push_back(UserPath(std::string(path)));
  }
  return paths;
}

}  // namespace

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

absl::StatusOr<std::vector<CalibrationFiles>> NamedCalibrations(FileSystem& file_system,
                                                                const std::string& calibrations,
                                                                const CalibrationFiles& given) {
  struct List {
    absl::string_view flag;
    std::vector<std::string> paths;
  };
  std::vector<List> lists;
  size_t count = 1;
  for (const auto& [flag, value] :
       std::initializer_list<std::pair<absl::string_view, const std::string&>>{
           {"calibration", calibrations},
           {"network", given.network},
           {"system", given.system},
           {"corrections", given.corrections}}) {
    ASSIGN_OR_RETURN(std::vector<std::string> paths, PathsOf(flag, value));
    count = std::max(count, paths.size());
    lists.push_back({flag, std::move(paths)});
  }
  std::vector<CalibrationFiles> result;
  for (size_t i = 0; i < count; ++i) {
    std::string paths[4];
    std::vector<std::string> apart;
    for (size_t flag = 0; flag < lists.size(); ++flag) {
      const std::vector<std::string>& list = lists[flag].paths;
      if (list.size() > 1 && list.size() != count) {
        return InvalidArgument("--", lists[flag].flag, " names ", list.size(),
                               " where another flag names ", count,
                               "; name one for all networks, or one for each");
      }
      if (list.empty()) continue;
      paths[flag] = list.size() == 1 ? list[0] : list[i];
      if (list.size() > 1) apart.push_back(list[i]);
    }
    if (!paths[0].empty()) {
      ASSIGN_OR_RETURN(const FileKind kind, file_system.Kind(paths[0]));
      if (kind != FileKind::kDirectory) {
        return InvalidArgument(
            "--calibration=", Printable(paths[0]),
            " is a file; expected the folder that astra_calibrate --calibration=DIR has written");
      }
    }
    ASSIGN_OR_RETURN(CalibrationFiles files,
                     NamedCalibration(file_system, paths[0], {paths[1], paths[2], paths[3]}));
    files.name = apart.empty() ? files.network : absl::StrJoin(apart, " + ");
    result.push_back(std::move(files));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> SimulationInputs(
    FileSystem& file_system, const std::string& prefix,
    const std::vector<CalibrationFiles>& networks) {
  std::vector<std::string> inputs;
  for (const char* suffix : {".*.et", ".*.et.gz", ".comm_groups.json"}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found,
                     file_system.Glob(absl::StrCat(prefix, suffix)));
    inputs.insert(inputs.end(), found.begin(), found.end());
  }
  for (const CalibrationFiles& network : networks) {
    for (const std::string& path : network.All()) inputs.push_back(path);
  }
  return inputs;
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

absl::StatusOr<std::string> ApplyToLinks(FileSystem& file_system, const CalibrationFiles& files,
                                         NetworkConfig* network, Corrections* corrections) {
  if (!network->has_links() || files.calibrated_network.empty()) return "";
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, files.calibrated_network));
  ASSIGN_OR_RETURN(const NetworkConfig calibrated,
                   ParseNetworkConfig(file.bytes(), files.calibrated_network));
  RETURN_IF_ERROR(ResolveLinks(calibrated, network));
  const double overhead_ns = corrections->overhead_ns;
  *corrections = Corrections();
  corrections->overhead_ns = overhead_ns;
  return "on links, the calibration's bandwidth, latency and overhead are used, not its ratios";
}

absl::StatusOr<PredictionIntervals> ReadIntervals(FileSystem& file_system,
                                                  const CalibrationFiles& files) {
  if (files.report.empty() || files.corrections.empty()) return PredictionIntervals();
  ASSIGN_OR_RETURN(const CalibrationReport report,
                   ReadCalibrationReport(file_system, files.report));
  absl::StatusOr<PredictionIntervals> intervals = PredictionIntervals::FromReport(report);
  if (!intervals.ok()) return Annotate(intervals.status(), Printable(files.report));
  return files.calibrated_network.empty() ? *std::move(intervals) : PredictionIntervals();
}

}  // namespace meridian
