#include "astra_bridge/calibration/calibration_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// "/device:GPU:0" is a GPU; XLA:CPU's devices are no planes.
std::string DeviceKind(absl::string_view device_name) {
  if (!absl::ConsumePrefix(&device_name, "/device:")) return "CPU";
  return std::string(device_name.substr(0, device_name.find(':')));
}

void FindFabrics(const CollectiveTable& table, CalibrationRun* run) {
  for (const std::vector<int32_t>& group : run->transfers.groups) {
    const auto node_of = [&](int32_t rank) { return table.node_of_rank()[rank]; };
    const bool across = std::any_of(group.begin(), group.end(), [&](int32_t rank) {
      return node_of(rank) != node_of(group[0]);
    });
    (across ? run->across_nodes : run->within_nodes) = true;
  }
}

std::set<int64_t> StepsOf(const ProfileCollectives& profile) {
  std::set<int64_t> steps;
  for (const CollectiveEvent& event : profile.events) {
    if (event.step.has_value()) steps.insert(*event.step);
  }
  return steps;
}

struct ProfileFolder {
  std::string name;
  std::vector<std::string> traces;
};

std::vector<ProfileFolder> SplitByFolder(const std::vector<std::string>& traces) {
  std::vector<ProfileFolder> folders;
  for (const std::string& trace : traces) {
    const size_t slash = trace.rfind('/');
    const std::string name = slash == std::string::npos ? "." : trace.substr(0, slash);
    auto found = std::find_if(folders.begin(), folders.end(),
                              [&](const ProfileFolder& known) { return known.name == name; });
    if (found == folders.end()) found = folders.insert(folders.end(), {name, {}});
    found->traces.push_back(trace);
  }
  return folders;
}

}  // namespace

std::vector<int64_t> WholeSteps(const CollectiveRun& run) {
  size_t profiles_with_any = 0;
  std::map<int64_t, size_t> profiles_with;
  for (const ProfileCollectives& profile : run.profiles) {
    const std::set<int64_t> steps = StepsOf(profile);
    if (!steps.empty()) ++profiles_with_any;
    for (int64_t step : steps) ++profiles_with[step];
  }
  std::vector<int64_t> steps;
  for (const auto& [step, profiles] : profiles_with) {
    if (profiles == profiles_with_any) steps.push_back(step);
  }
  if (steps.size() >= 3) {
    steps.pop_back();
    steps.erase(steps.begin());
  }
  return steps;
}

absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options) {
  RETURN_IF_ERROR(CheckOneRun(run));
  const HappensBefore check = CheckHappensBefore(run.table);
  if (!options.allow_violations) RETURN_IF_ERROR(RefuseViolations(run, check));
  CalibrationRun result;
  result.folder = folder;
  result.transfers = TakeTransfers(run.table);
  result.steps = WholeSteps(run);
  for (const std::string& note : run.ranks.notes) result.notes.push_back(Printable(note));
  if (!check.violations.empty()) {
    result.notes.push_back(absl::StrCat(
        Printable(folder), ": ", check.violations.size(),
        " collectives end before they began somewhere: its clocks disagree, and its transfers are "
        "wrong by as much"));
  }
  for (const ProfileCollectives& profile : run.profiles) {
    for (const LocalDevice& device : profile.devices) {
      result.device_kinds.insert(DeviceKind(device.name));
    }
  }
  FindFabrics(run.table, &result);
  return result;
}

absl::StatusOr<std::vector<CalibrationRun>> ReadCalibrationRuns(
    FileSystem& file_system, const std::vector<std::string>& traces,
    const CalibrationRunOptions& options) {
  std::vector<CalibrationRun> runs;
  size_t files_done = 0;
  for (ProfileFolder& folder : SplitByFolder(traces)) {
    CollectiveRunOptions read;
    read.reader = options.reader;
    if (options.progress) {
      read.progress = [&](size_t file) { options.progress(files_done + file); };
    }
    ASSIGN_OR_RETURN(const CollectiveRun run, ReadCollectiveRun(file_system, folder.traces, read));
    files_done += folder.traces.size();
    ASSIGN_OR_RETURN(runs.emplace_back(), MakeCalibrationRun(folder.name, run, options));
    runs.back().traces = std::move(folder.traces);
  }
  return runs;
}

}  // namespace meridian
