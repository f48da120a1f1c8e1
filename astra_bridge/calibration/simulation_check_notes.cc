#include "astra_bridge/calibration/simulation_check_notes.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

// Without what says nothing: "./run" and "run/" are "run".
std::string Normal(const std::string& folder) {
  return (std::filesystem::path(folder) / "").lexically_normal().string();
}

bool IsSame(const CalibratedRun& calibrated, const CalibrationRun& run) {
  return calibrated.ranks() == run.transfers.ranks &&
         calibrated.transfers() == static_cast<int64_t>(run.transfers.samples.size()) &&
         Normal(calibrated.folder()) == Normal(run.folder);
}

}  // namespace

std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs) {
  std::vector<std::string> notes;
  for (const CalibrationRun& run : runs) {
    const bool was_used =
        std::any_of(calibration.runs().begin(), calibration.runs().end(),
                    [&](const CalibratedRun& calibrated) { return IsSame(calibrated, run); });
    if (!was_used) continue;
    notes.push_back(absl::StrCat(Printable(run.folder),
                                 " was used for this calibration, whose report names it with as "
                                 "many transfers: its errors are those of the fit, no test"));
  }
  return notes;
}

}  // namespace meridian
