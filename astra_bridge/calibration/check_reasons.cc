#include "astra_bridge/calibration/check_reasons.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A rank that computes for more than this share of a collective's time slows it down.
constexpr double kNotableComputeShare = 0.1;
// The same for ranks outside of its group, which share at most its host, and for collectives of
// others.
constexpr double kNotableOthersShare = 0.25;
constexpr double kNotableBeside = 0.25;
// Middle halves of repeats that span more than this factor have another cause than the network.
constexpr double kUnsteadyFactor = 1.5;

// Returns the path without what says nothing: "./run" and "run/" are "run".
std::string Normal(const std::string& folder) {
  return (std::filesystem::path(folder) / "").lexically_normal().string();
}

absl::Status Unusable(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the calibration ", what, "; write its report anew with astra_calibrate"));
}

}  // namespace

std::vector<std::string> CalibratedRange::Beyond(
    const TransferCell& cell, const std::set<std::string>& cell_device_kinds) const {
  std::vector<std::string> reasons;
  const auto found = sizes.find(cell.kind);
  if (found == sizes.end()) {
    reasons.push_back("kind not in the calibration");
  } else if (cell.bytes < found->second.smallest || cell.bytes > found->second.largest) {
    reasons.push_back("size outside the calibration");
  }
  if (cell.kind == CollectiveKind::kPointToPoint) {
    if (found != sizes.end() && pairs.count(cell.pairs) == 0) {
      reasons.push_back("number of pairs at once not in the calibration");
    }
    if (found != sizes.end() && !(IsOneWay(cell) ? has_one_way : has_both_ways)) {
      reasons.push_back(absl::StrCat("messages ", IsOneWay(cell) ? "one way" : "both ways",
                                     " not in the calibration"));
    }
  } else if (group_sizes.count(static_cast<int64_t>(cell.participants.size())) == 0) {
    reasons.push_back("group size not in the calibration");
  }
  if (run_sizes.count(cell.ranks) == 0) {
    reasons.push_back("number of ranks of the run not in the calibration");
  }
  if (LargestHop(cell) > largest_hop) {
    reasons.push_back("members further apart than in the calibration");
  }
  const auto named = protocols.find(cell.kind);
  if (!cell.protocol.empty() && named != protocols.end() &&
      named->second.count(cell.protocol) == 0) {
    reasons.push_back("another protocol than in the calibration");
  }
  if (!device_kinds.empty() && !std::includes(device_kinds.begin(), device_kinds.end(),
                                              cell_device_kinds.begin(), cell_device_kinds.end())) {
    reasons.push_back(absl::StrCat("on ", absl::StrJoin(cell_device_kinds, " and "),
                                   ", calibrated on ", absl::StrJoin(device_kinds, " and ")));
  }
  return reasons;
}

absl::StatusOr<CalibratedRange> RangeOf(const CalibrationReport& report) {
  CalibratedRange range;
  for (const TransferSpread& spread : report.spreads()) {
    const bool is_sound =
        spread.ratios_size() > 0 &&
        std::all_of(spread.ratios().begin(), spread.ratios().end(),
                    [](double ratio) { return std::isfinite(ratio) && ratio >= 0; });
    if (!is_sound) return Unusable("has a spread without ratios, or with one that is no ratio");
  }
  for (const CalibratedCell& cell : report.cells()) {
    if (!cell.fitted()) continue;
    const std::optional<CollectiveKind> kind = TimedKindFromName(cell.kind());
    if (!kind.has_value()) {
      return Unusable(absl::StrCat("has a cell of kind ", Printable(cell.kind())));
    }
    const auto [found, is_new] = range.sizes.insert({*kind, {cell.bytes(), cell.bytes()}});
    found->second.smallest = std::min(found->second.smallest, cell.bytes());
    found->second.largest = std::max(found->second.largest, cell.bytes());
    const bool is_permute = *kind == CollectiveKind::kPointToPoint;
    const int64_t size = is_permute ? cell.pairs() : cell.group_size();
    if (size <= 0) {
      return Unusable(absl::StrCat("does not say how many ",
                                   is_permute ? "pairs a permute" : "ranks a group", " has"));
    }
    (is_permute ? range.pairs : range.group_sizes).insert(size);
    if (cell.ranks() <= 0) return Unusable("does not say how many ranks a run has");
    range.run_sizes.insert(cell.ranks());
    if (is_permute) {
      (absl::StrContains(cell.group(), kOneWayText) ? range.has_one_way : range.has_both_ways) =
          true;
    }
    if (cell.largest_hop() <= 0) {
      return Unusable("does not say how far apart the members of a group are");
    }
    range.largest_hop = std::max(range.largest_hop, cell.largest_hop());
    if (!cell.protocol().empty()) range.protocols[*kind].insert(cell.protocol());
  }
  if (range.sizes.empty()) {
    return absl::InvalidArgumentError(
        "nothing was fitted in this calibration, so that it cannot say what it had seen; give the "
        "file that astra_calibrate --report has written");
  }
  for (const CalibratedRun& run : report.runs()) {
    for (const std::string& kind : run.device_kinds()) range.device_kinds.insert(Printable(kind));
  }
  return range;
}

std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs) {
  std::vector<std::string> notes;
  for (const CalibrationRun& run : runs) {
    const auto is_same = [&](const CalibratedRun& calibrated) {
      return calibrated.ranks() == run.transfers.ranks &&
             calibrated.transfers() == static_cast<int64_t>(run.transfers.samples.size()) &&
             Normal(calibrated.folder()) == Normal(run.folder);
    };
    if (std::none_of(calibration.runs().begin(), calibration.runs().end(), is_same)) continue;
    notes.push_back(absl::StrCat(Printable(run.folder),
                                 " was used for this calibration, whose report names it with as "
                                 "many transfers: its errors are those of the fit, no test"));
  }
  return notes;
}

std::vector<std::string> NotesOnCorrections(const CalibrationReport& calibration,
                                            const Corrections& corrections) {
  CalibrationReport given;
  ListCorrections(corrections, &given);
  const auto same = [](const CalibratedCorrection& a, const CalibratedCorrection& b) {
    // Files may have been written with fewer digits.
    constexpr double kMargin = 1e-6;
    const auto near = [](double x, double y) {
      return std::abs(x - y) <= kMargin * std::max(std::abs(x), std::abs(y));
    };
    return a.kind() == b.kind() && a.bytes() == b.bytes() && near(a.ratio(), b.ratio()) &&
           near(a.ranks(), b.ranks());
  };
  if (std::equal(calibration.corrections().begin(), calibration.corrections().end(),
                 given.corrections().begin(), given.corrections().end(), same)) {
    return {};
  }
  return {
      "the corrections are not those of this calibration: what it had seen says nothing about "
      "them; give --corrections and --calibration of the same astra_calibrate"};
}

absl::string_view ReasonTopic(absl::string_view reason) {
  return reason.substr(0, reason.find(':'));
}

std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::optional<CalibratedRange>& range) {
  std::vector<std::string> reasons;
  if (range.has_value()) reasons = range->Beyond(cell, circumstances.device_kinds);
  if (2 * circumstances.overlapped > static_cast<int64_t>(cell.transfers_ns.size())) {
    reasons.push_back(kMetOthers);
  }
  if (circumstances.compute_share.value_or(0) > kNotableComputeShare) {
    reasons.push_back(absl::StrFormat("computing beside: %.0f %% of its time",
                                      100 * *circumstances.compute_share));
  }
  if (circumstances.others_compute_share.value_or(0) > kNotableOthersShare) {
    reasons.push_back(absl::StrFormat("ranks of other groups compute: %.0f %% of its time",
                                      100 * *circumstances.others_compute_share));
  }
  if (circumstances.beside > kNotableBeside) {
    reasons.push_back(absl::StrFormat("beside other groups: on average %.1f of them under way",
                                      circumstances.beside));
  }
  if (Quantile(cell.transfers_ns, 0.75) > kUnsteadyFactor * Quantile(cell.transfers_ns, 0.25)) {
    reasons.push_back("unsteady repeats (time slicing or other work)");
  }
  return reasons;
}

}  // namespace meridian
