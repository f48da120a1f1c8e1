#include "astra_bridge/calibration/check_reasons.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// A rank that computes for more than this share of a collective's time slows it down.
constexpr double kNotableComputeShare = 0.1;
// The same for ranks outside of its group, which share at most its host, and for collectives of
// others.
constexpr double kNotableOthersShare = 0.25;
constexpr double kNotableBeside = 0.25;
// Pauses this many times as short, or as long, as all that were calibrated with: what is done again
// at once finds threads awake and caches warm.
constexpr double kNotablePause = 3;
// Repeats tell what a circumstance does where so many have it more or less by this.
constexpr size_t kLeastForEffect = 9;
constexpr double kLeastContrast = 0.3;
// Middle halves of repeats that span more than this factor have another cause than the network.
constexpr double kUnsteadyFactor = 1.5;
// Slices are not exactly alike.
constexpr double kSliceMargin = 0.97;

// Times within this factor of the shortest are alike.
constexpr double kAlike = 1.03;
// Fewer are alike by chance.
constexpr size_t kEnoughAlike = 3;
// Times this many times as long as simulated have another cause than the network.
constexpr double kFarMore = 2;
// Devices are handed over every few milliseconds; what takes less is a collective's overhead.
constexpr double kLeastSliceNs = 500'000;
// Collectives are unlike whose simulated times differ by more than this factor, and by so much of
// what they took that it would show if it were added to an overhead that all have.
constexpr double kUnlike = 2;
constexpr double kShows = 0.1;
// What is simulated to take half as long, but took less than a quarter, shows that the network is
// not the cause.
constexpr double kComparable = 0.5;
constexpr double kFarLess = 0.25;

// Returns whether one of the calibrated sizes around these bytes, or these bytes where they were
// calibrated, had the protocol.
bool IsProtocolNear(int64_t bytes, const std::string& protocol,
                    const std::map<int64_t, std::set<std::string>>& by_bytes) {
  const auto above = by_bytes.lower_bound(bytes);
  if (above != by_bytes.end() && above->second.count(protocol) > 0) return true;
  if (above != by_bytes.end() && above->first == bytes) return false;
  return above != by_bytes.begin() && std::prev(above)->second.count(protocol) > 0;
}

// Returns " (repeats with the most take 1.90 times those with the least)", comparing thirds of the
// repeats; nothing where they do not tell.
std::string EffectText(const std::vector<double>& amounts,
                       const std::vector<double>& transfers_ns) {
  if (amounts.size() != transfers_ns.size() || amounts.size() < kLeastForEffect) return "";
  std::vector<size_t> order(amounts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return amounts[a] < amounts[b]; });
  const size_t third = order.size() / 3;
  std::vector<double> least, most, least_ns, most_ns;
  for (size_t i = 0; i < third; ++i) {
    least.push_back(amounts[order[i]]);
    least_ns.push_back(transfers_ns[order[i]]);
    most.push_back(amounts[order[order.size() - 1 - i]]);
    most_ns.push_back(transfers_ns[order[order.size() - 1 - i]]);
  }
  if (Mean(most) - Mean(least) < kLeastContrast) return "";
  return absl::StrFormat(" (repeats with the most take %.2f times those with the least)",
                         Median(most_ns) / Median(least_ns));
}

// Returns the path without what says nothing: "./run" and "run/" are "run".
std::string Normal(const std::string& folder) {
  return (std::filesystem::path(folder) / "").lexically_normal().string();
}

// The medians of a kind and size over all groups.
struct Timed {
  double measured_ns = 0;
  double simulated_ns = 0;

  bool may_be_sliced() const {
    return measured_ns >= kLeastSliceNs && measured_ns >= kFarMore * simulated_ns;
  }
};

// Says whether a cell comes sooner or later behind others than what was calibrated with, and on
// another day.
void AddPauseAndTime(const TransferCell& cell, const CellCircumstances& circumstances,
                     const CalibratedRange& range, std::vector<std::string>* reasons) {
  if (cell.pause_ns.has_value() && range.longest_pause_ns >= range.shortest_pause_ns) {
    if (*cell.pause_ns * kNotablePause < range.shortest_pause_ns) {
      reasons->push_back(absl::StrFormat(
          "sooner behind another collective: after %.0f us, in the calibration after %.0f us or "
          "more",
          std::max(0.0, *cell.pause_ns / kNsPerUs), range.shortest_pause_ns / kNsPerUs));
    } else if (*cell.pause_ns > kNotablePause * std::max(0.0, range.longest_pause_ns)) {
      reasons->push_back(absl::StrFormat(
          "later behind another collective: after %.0f us, in the calibration after %.0f us or "
          "less",
          *cell.pause_ns / kNsPerUs, std::max(0.0, range.longest_pause_ns / kNsPerUs)));
    }
  }
  if (range.first_recorded_ns <= 0 || circumstances.first_recorded_ns <= 0) return;
  const int64_t apart_ns = std::max(circumstances.first_recorded_ns - range.last_recorded_ns,
                                    range.first_recorded_ns - circumstances.last_recorded_ns);
  if (apart_ns <= kSameSittingNs) return;
  reasons->push_back(
      absl::StrFormat("recorded at another time: %.1f hours from the calibration",
                      static_cast<double>(apart_ns) / static_cast<double>(kNsPerHour)));
}

std::optional<double> FindSliceNs(std::vector<Timed> all) {
  std::sort(all.begin(), all.end(),
            [](const Timed& a, const Timed& b) { return a.measured_ns < b.measured_ns; });
  // The simulated times of what takes about as long as the shortest, and the longest simulated time
  // of what took far less, 0 when nothing did.
  std::multiset<double> alike_ns;
  double quick_ns = 0;
  auto end_of_alike = all.begin(), end_of_quick = all.begin();
  for (const Timed& shortest : all) {
    if (!shortest.may_be_sliced()) continue;
    for (; end_of_alike != all.end() && end_of_alike->measured_ns < kAlike * shortest.measured_ns;
         ++end_of_alike) {
      if (end_of_alike->may_be_sliced()) alike_ns.insert(end_of_alike->simulated_ns);
    }
    for (; end_of_quick->measured_ns <= kFarLess * shortest.measured_ns; ++end_of_quick) {
      quick_ns = std::max(quick_ns, end_of_quick->simulated_ns);
    }
    const double least_ns = *alike_ns.begin();
    const double most_ns = *alike_ns.rbegin();
    const bool unlike =
        most_ns > kUnlike * least_ns && most_ns - least_ns > kShows * shortest.measured_ns;
    const bool others_were_quick = quick_ns > 0 && quick_ns >= kComparable * least_ns;
    if (alike_ns.size() >= kEnoughAlike && (unlike || others_were_quick)) {
      return shortest.measured_ns;
    }
    alike_ns.erase(alike_ns.find(shortest.simulated_ns));
  }
  return std::nullopt;
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
      !IsProtocolNear(cell.bytes, cell.protocol, named->second)) {
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
    if (is_sound) continue;
    return absl::InvalidArgumentError(
        "the calibration has a spread without ratios, or with one that is no ratio; write the "
        "report "
        "anew with astra_calibrate");
  }
  for (const CalibratedCell& cell : report.cells()) {
    if (!cell.fitted()) continue;
    const std::optional<CollectiveKind> kind = TimedKindFromName(cell.kind());
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the calibration has a cell of kind ", Printable(cell.kind())));
    }
    const auto [found, is_new] = range.sizes.insert({*kind, {cell.bytes(), cell.bytes()}});
    found->second.smallest = std::min(found->second.smallest, cell.bytes());
    found->second.largest = std::max(found->second.largest, cell.bytes());
    const bool is_permute = *kind == CollectiveKind::kPointToPoint;
    const int64_t size = is_permute ? cell.pairs() : cell.group_size();
    if (size <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the calibration does not say how many ",
                       is_permute ? "pairs a permute" : "ranks a group",
                       " has; write its report anew with astra_calibrate"));
    }
    (is_permute ? range.pairs : range.group_sizes).insert(size);
    if (cell.ranks() <= 0) {
      return absl::InvalidArgumentError(
          "the calibration does not say how many ranks a run has; write its report anew with "
          "astra_calibrate");
    }
    range.run_sizes.insert(cell.ranks());
    if (is_permute) {
      (absl::StrContains(cell.group(), kOneWayText) ? range.has_one_way : range.has_both_ways) =
          true;
    }
    if (cell.largest_hop() <= 0) {
      return absl::InvalidArgumentError(
          "the calibration does not say how far apart the members of a group are; write its report "
          "anew with astra_calibrate");
    }
    range.largest_hop = std::max(range.largest_hop, cell.largest_hop());
    if (cell.has_pause_ns()) {
      const bool is_first = range.longest_pause_ns < range.shortest_pause_ns;
      range.shortest_pause_ns =
          is_first ? cell.pause_ns() : std::min(range.shortest_pause_ns, cell.pause_ns());
      range.longest_pause_ns =
          is_first ? cell.pause_ns() : std::max(range.longest_pause_ns, cell.pause_ns());
    }
    if (!cell.protocol().empty()) range.protocols[*kind][cell.bytes()].insert(cell.protocol());
  }
  if (range.sizes.empty()) {
    return absl::InvalidArgumentError(
        "nothing was fitted in this calibration, so that it cannot say what it had seen; give the "
        "file that astra_calibrate --report has written");
  }
  for (const CalibratedRun& run : report.runs()) {
    for (const std::string& kind : run.device_kinds()) range.device_kinds.insert(Printable(kind));
    if (run.recorded_ns() <= 0) continue;
    const bool is_first = range.first_recorded_ns == 0;
    range.first_recorded_ns =
        is_first ? run.recorded_ns() : std::min(range.first_recorded_ns, run.recorded_ns());
    range.last_recorded_ns = std::max(range.last_recorded_ns, run.recorded_ns());
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

std::map<int32_t, double> FindTimeSlicesNs(absl::Span<const TransferCell> cells,
                                           absl::Span<const double> simulated_ns) {
  // The measured and the simulated times of each kind and size, by the number of ranks.
  using Times = std::pair<std::vector<double>, std::vector<double>>;
  std::map<int32_t, std::map<std::pair<CollectiveKind, int64_t>, Times>> runs;
  for (size_t i = 0; i < cells.size(); ++i) {
    auto& [measured, simulated] = runs[cells[i].ranks][{cells[i].kind, cells[i].bytes}];
    measured.push_back(cells[i].median_ns);
    simulated.push_back(simulated_ns[i]);
  }
  std::map<int32_t, double> slices_ns;
  for (const auto& [ranks, sizes] : runs) {
    std::vector<Timed> all;
    for (const auto& [kind_and_bytes, times] : sizes) {
      all.push_back({Median(times.first), Median(times.second)});
    }
    const std::optional<double> slice_ns = FindSliceNs(std::move(all));
    if (slice_ns.has_value()) slices_ns[ranks] = *slice_ns;
  }
  return slices_ns;
}

absl::string_view ReasonTopic(absl::string_view reason) {
  return reason.substr(0, reason.find(':'));
}

std::vector<std::string> FindReasons(const TransferCell& cell,
                                     const CellCircumstances& circumstances,
                                     const std::map<int32_t, double>& time_slices_ns,
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
  if (!circumstances.beside.empty() && Mean(circumstances.beside) > kNotableBeside) {
    reasons.push_back(
        absl::StrFormat("beside other groups: mostly %s, on average %.1f of them under way%s",
                        circumstances.most_beside, Mean(circumstances.beside),
                        EffectText(circumstances.beside, cell.transfers_ns)));
  }
  if (range.has_value()) AddPauseAndTime(cell, circumstances, *range, &reasons);
  if (Quantile(cell.transfers_ns, 0.75) > kUnsteadyFactor * Quantile(cell.transfers_ns, 0.25)) {
    reasons.push_back("unsteady repeats (time slicing or other work)");
  }
  const auto slice_ns = time_slices_ns.find(cell.ranks);
  if (slice_ns != time_slices_ns.end() && cell.median_ns >= kSliceMargin * slice_ns->second) {
    reasons.push_back("time slices of the device");
  }
  return reasons;
}

}  // namespace meridian
