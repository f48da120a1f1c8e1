#include "astra_bridge/calibration/calibration_run.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

// "/device:GPU:0" is a GPU; XLA:CPU's devices are no planes.
std::string DeviceKind(absl::string_view device_name) {
  if (!absl::ConsumePrefix(&device_name, "/device:")) return "CPU";
  return std::string(device_name.substr(0, device_name.find(':')));
}

absl::Status RefuseClocks(const std::string& folder, const CollectiveTable& table,
                          const HappensBefore& check) {
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": the clocks of the profiles disagree: ", check.violations.size(),
                   " of ", check.checked, " collectives end before they began somewhere, first ",
                   Printable(DescribeViolation(table, check.violations[0])),
                   "; align the profiles with combine first, or insist with --allow_violations"));
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

}  // namespace

std::vector<ProfileFolder> SplitByFolder(const std::vector<std::string>& traces) {
  std::vector<ProfileFolder> folders;
  for (const std::string& trace : traces) {
    const size_t slash = trace.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : trace.substr(0, slash);
    auto found = std::find_if(folders.begin(), folders.end(),
                              [&](const ProfileFolder& known) { return known.folder == folder; });
    if (found == folders.end()) found = folders.insert(folders.end(), {folder, {}});
    found->traces.push_back(trace);
  }
  return folders;
}

absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options) {
  RETURN_IF_ERROR(CheckOneRun(run));
  const HappensBefore check = CheckHappensBefore(run.table);
  if (!check.violations.empty() && !options.allow_violations) {
    return RefuseClocks(folder, run.table, check);
  }
  CalibrationRun result;
  result.violations = check.violations.size();
  result.folder = folder;
  result.transfers = TakeTransfers(run.table);
  for (const ProfileCollectives& profile : run.profiles) {
    for (const LocalDevice& device : profile.devices) {
      result.device_kinds.insert(DeviceKind(device.name));
    }
  }
  FindFabrics(run.table, &result);
  return result;
}

}  // namespace meridian
