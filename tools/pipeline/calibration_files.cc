#include "tools/pipeline/calibration_files.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// The parts of a comma list as the user meant them.
std::vector<std::string> PathsOf(const std::string& list) {
  std::vector<std::string> paths;
  for (absl::string_view path : absl::StrSplit(list, ',', absl::SkipEmpty())) {
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
  for (const auto file : {&CalibrationFiles::network, &CalibrationFiles::system,
                          &CalibrationFiles::corrections, &CalibrationFiles::report}) {
    if (!(given.*file).empty()) continue;
    if (!file_system.Kind(found.*file).ok()) {
      return absl::NotFoundError(
          absl::StrCat(Printable(found.*file),
                       ": there is no such file; --calibration expects the folder that "
                       "astra_calibrate --calibration=DIR has written"));
    }
    given.*file = found.*file;
  }
  return given;
}

absl::StatusOr<std::vector<CalibrationFiles>> NamedCalibrations(FileSystem& file_system,
                                                                const std::string& calibrations,
                                                                const CalibrationFiles& given) {
  const std::pair<const char*, std::vector<std::string>> lists[] = {
      {"calibration", PathsOf(calibrations)},
      {"network", PathsOf(given.network)},
      {"system", PathsOf(given.system)},
      {"corrections", PathsOf(given.corrections)}};
  size_t count = 1;
  for (const auto& [flag, list] : lists) count = std::max(count, list.size());
  std::vector<CalibrationFiles> result;
  for (size_t i = 0; i < count; ++i) {
    std::string paths[4];
    for (size_t flag = 0; flag < 4; ++flag) {
      const std::vector<std::string>& list = lists[flag].second;
      if (list.size() > 1 && list.size() != count) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", lists[flag].first, " names ", list.size(), " where another flag ",
                         "names ", count, "; name one for all networks, or one for each"));
      }
      if (!list.empty()) paths[flag] = list.size() == 1 ? list[0] : list[i];
    }
    ASSIGN_OR_RETURN(result.emplace_back(),
                     NamedCalibration(file_system, paths[0], {paths[1], paths[2], paths[3], ""}));
  }
  return result;
}

}  // namespace meridian
