#include "astra_bridge/calibration/simulation_check_notes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/tables/text_table.h"

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

// Files may have been written with fewer digits.
bool IsNear(double a, double b) {
  constexpr double kMargin = 1e-6;
  return std::abs(a - b) <= kMargin * std::max(std::abs(a), std::abs(b));
}

bool IsSame(const CalibratedSegment& calibrated, CollectiveKind kind,
            const CorrectionSegment& segment) {
  const int64_t up_to_bytes =
      calibrated.has_up_to_bytes() ? calibrated.up_to_bytes() : std::numeric_limits<int64_t>::max();
  return calibrated.kind() == CollectiveKindName(kind) && up_to_bytes == segment.up_to_bytes &&
         IsNear(calibrated.overhead_ns(), segment.overhead_ns) &&
         IsNear(calibrated.efficiency(), segment.efficiency);
}

// Reports list segments by kind, in the order of CollectiveKind.
bool AreThoseOf(const CalibrationReport& calibration, const Corrections& corrections) {
  int next = 0;
  for (size_t kind = 0; kind < corrections.segments.size(); ++kind) {
    for (const CorrectionSegment& segment : corrections.segments[kind]) {
      if (next == calibration.segments_size()) return false;
      if (!IsSame(calibration.segments(next), static_cast<CollectiveKind>(kind), segment))
        return false;
      ++next;
    }
  }
  return next == calibration.segments_size();
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

std::vector<std::string> NotesOnCorrections(const CalibrationReport& calibration,
                                            const Corrections& corrections) {
  if (AreThoseOf(calibration, corrections)) return {};
  return {
      "the corrections are not those of this calibration: what it had seen says nothing about "
      "them; give --corrections and --calibration of the same astra_calibrate"};
}

}  // namespace meridian
