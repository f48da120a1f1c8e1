#include "astra_bridge/calibration/calibration_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A slope beyond this share, and beyond so many of its standard errors, is worth a note.
constexpr double kNotableSlope = 0.1;
constexpr double kNotableDeviations = 3;
// So is a fitted cell that is off by more than this.
constexpr double kNotableError = 0.3;
// Runs recorded further apart than this may have met a different load, or be of other machines.
constexpr int64_t kNsPerHour = int64_t{3600} * 1'000'000'000;
// Repeats of smaller transfers scatter more: what a host does beside them weighs more.
constexpr int64_t kSmallBytes = 65536;
constexpr int kSpreadQuantiles = 20;
// Repeats beyond these shares are hiccups of the machine, which come too seldom to be drawn.
constexpr double kTail = 0.05;
using Notes = std::vector<std::string>;

// Tells what of the given network is not taken as it is, and what it changes besides its shape.
void AddTopology(const Fabric& topology, const Fabric& start, Notes* notes) {
  const int32_t given = topology.network.npus();
  if (given != start.network.npus()) {
    notes->push_back(absl::StrCat("--topology has ", given, " NPUs; the network written has ",
                                  start.network.npus(), ", as many as the largest run has ranks"));
  }
  std::vector<std::string> names;
  bool pairwise = true;
  for (const CollectiveAlgorithm& algorithm :
       start.system.algorithms_of(CollectiveKind::kAllToAll)) {
    pairwise &= algorithm.kind == CollectiveAlgorithm::Kind::kDirect;
    names.push_back(CollectiveAlgorithmName(algorithm));
  }
  if (pairwise) return;
  notes->push_back(absl::StrCat("with this --topology all-to-all is simulated as ",
                                absl::StrJoin(names, ", "),
                                "; without one it is direct, as libraries send it"));
}

void AddUntoldParameters(absl::Span<const FittedParameter> parameters, Notes* notes) {
  for (const FittedParameter& fitted : parameters) {
    const std::string name = ParameterName(fitted.parameter);
    if (fitted.kept) {
      notes->push_back(
          absl::StrCat(name, " is not identifiable from these transfers: it keeps ", fitted.value));
    } else if (!fitted.identifiable) {
      notes->push_back(absl::StrCat(
          name, " is not identifiable: ", fitted.value,
          " fits best, but transfers are too few, or miss the engine's times too much alike, to "
          "vouch for it"));
    }
    if (!fitted.includes_overhead) continue;
    notes->push_back(absl::StrCat(
        name,
        " is effective: what a collective costs once cannot be told from what each of its steps "
        "costs, and is in it"));
  }
}

void AddMergedSizes(const std::string& kind, const std::set<int64_t>& sizes, Notes* notes) {
  const auto near = [](int64_t bytes, int64_t next) {
    return static_cast<double>(next) < kSameSizeFactor * static_cast<double>(bytes);
  };
  if (std::adjacent_find(sizes.begin(), sizes.end(), near) == sizes.end()) return;
  notes->push_back(absl::StrCat(kind, " has ", sizes.size(), " sizes: those within a factor of ",
                                kSameSizeFactor, " were taken together"));
}

void AddFittedCells(const CalibrationReport& report, Notes* notes) {
  std::map<std::string, std::set<int64_t>> sizes;
  std::set<int64_t> group_sizes;
  int64_t far = 0;
  const CalibratedCell* farthest = nullptr;
  for (const CalibratedCell& cell : report.cells()) {
    if (!cell.fitted()) continue;
    sizes[cell.kind()].insert(cell.bytes());
    if (cell.kind() != CollectiveKindName(CollectiveKind::kPointToPoint)) {
      group_sizes.insert(cell.group_size());
    }
    const double error = std::abs(cell.signed_error());
    if (error <= kNotableError) continue;
    ++far;
    if (farthest == nullptr || error > std::abs(farthest->signed_error())) farthest = &cell;
  }
  for (const auto& [kind, of_kind] : sizes) AddMergedSizes(kind, of_kind, notes);
  if (group_sizes.size() == 1) {
    notes->push_back(absl::StrCat("all groups have ", *group_sizes.begin(),
                                  " ranks: one algorithm cannot be told from another, and other "
                                  "numbers of ranks are extrapolated"));
  }
  if (farthest == nullptr) return;
  notes->push_back(absl::StrCat(
      far, " of the fitted cells ", far == 1 ? "is" : "are", " off by more than ",
      Percent(kNotableError), ", most ", farthest->kind(), " of ",
      FormatByteSize(farthest->bytes()), " (", SignedPercent(farthest->signed_error()),
      "): groups differ there, or sizes that were taken together, and a correction is their "
      "mean"));
}

// Says what is assumed of messages that were not measured.
void AddAssumedMessages(const CalibrationReport& report, Notes* notes) {
  bool one_way = false, both_ways = false;
  for (const CalibratedCell& cell : report.cells()) {
    if (cell.kind() != CollectiveKindName(CollectiveKind::kPointToPoint)) continue;
    (absl::StrContains(cell.group(), kOneWayText) ? one_way : both_ways) = true;
  }
  if (one_way == both_ways) return;
  notes->push_back(absl::StrFormat(
      "no message went %s: one way is taken to have %g times the bandwidth of both ways at once",
      one_way ? "both ways" : "one way", kOneWayAdvantage));
}

// Says when runs are fitted together that may have met a different load, or other machines.
void AddRecordingTimes(absl::Span<const CalibrationRun> runs, Notes* notes) {
  int64_t first_ns = std::numeric_limits<int64_t>::max(), last_ns = 0;
  for (const CalibrationRun& run : runs) {
    first_ns = std::min(first_ns, run.recorded_ns);
    last_ns = std::max(last_ns, run.recorded_ns);
  }
  if (first_ns <= 0 || last_ns < first_ns || last_ns - first_ns <= kNsPerHour) return;
  notes->push_back(
      absl::StrFormat("the runs were recorded up to %.1f hours apart: what differs between them "
                      "may be the machine's "
                      "load, or another machine",
                      static_cast<double>(last_ns - first_ns) / static_cast<double>(kNsPerHour)));
}

void AddArrivalSpread(const ArrivalSpread& spread, Notes* notes) {
  if (std::abs(spread.slope()) <= kNotableSlope ||
      std::abs(spread.slope()) <= kNotableDeviations * spread.slope_standard_error()) {
    return;
  }
  notes->push_back(absl::StrFormat(
      "transfers change with how late the last rank comes (slope %.2f): %s", spread.slope(),
      spread.slope() > 0 ? "waiting is left in them, or clocks are off"
                         : "data moves before all have come"));
}

}  // namespace

std::vector<TransferSpread> MeasureSpreads(absl::Span<const TransferCell> cells) {
  std::vector<TransferSpread> spreads;
  for (const bool is_small : {true, false}) {
    std::vector<double> ratios;
    for (const TransferCell& cell : cells) {
      // A cell that was not repeated has no spread.
      if ((cell.bytes < kSmallBytes) != is_small || cell.transfers_ns.size() < 2) continue;
      for (const double transfer_ns : cell.transfers_ns) {
        ratios.push_back(transfer_ns / cell.median_ns);
      }
    }
    if (ratios.empty()) continue;
    TransferSpread& spread = spreads.emplace_back();
    spread.set_from_bytes(is_small ? 0 : kSmallBytes);
    for (int i = 0; i < kSpreadQuantiles; ++i) {
      spread.add_ratios(Quantile(ratios, kTail + (1 - 2 * kTail) * (i + 0.5) / kSpreadQuantiles));
    }
  }
  return spreads;
}

// Least squares within cells: all about the cell's mean, in units of its median.
ArrivalSpread MeasureArrivalSpread(absl::Span<const TransferCell> cells) {
  double xx = 0, xy = 0, yy = 0;
  int64_t n = 0;
  for (const TransferCell& cell : cells) {
    const double mean_spread_ns = Mean(cell.arrival_spreads_ns);
    const double mean_transfer_ns = Mean(cell.transfers_ns);
    for (size_t i = 0; i < cell.transfers_ns.size(); ++i) {
      const double x = (cell.arrival_spreads_ns[i] - mean_spread_ns) / cell.median_ns;
      const double y = (cell.transfers_ns[i] - mean_transfer_ns) / cell.median_ns;
      xx += x * x;
      xy += x * y;
      yy += y * y;
      ++n;
    }
  }
  ArrivalSpread spread;
  spread.set_n(n);
  const int64_t freedom = n - static_cast<int64_t>(cells.size()) - 1;
  if (xx > 0 && freedom > 0) {
    spread.set_slope(xy / xx);
    spread.set_slope_standard_error(
        std::sqrt(std::max(0.0, yy - xy * xy / xx) / static_cast<double>(freedom) / xx));
  }
  return spread;
}

ClockCheck CheckTransferClocks(absl::Span<const CalibrationRun> runs) {
  std::vector<double> differences_ns, shares;
  for (const CalibrationRun& run : runs) {
    for (const TransferSample& sample : run.transfers.samples) {
      differences_ns.push_back(sample.transfer_ns - sample.shortest_duration_ns);
      shares.push_back(differences_ns.back() / sample.transfer_ns);
    }
  }
  ClockCheck check;
  check.set_median_difference_ns(Median(differences_ns));
  check.set_p95_difference_ns(Quantile(differences_ns, 0.95));
  check.set_median_share(Median(shares));
  return check;
}

Notes CalibrationNotes(absl::Span<const CalibrationRun> runs, const std::optional<Fabric>& topology,
                       const Fabric& start, absl::Span<const FittedParameter> parameters,
                       const CalibrationReport& report) {
  Notes notes;
  for (const CalibrationRun& run : runs) {
    notes.insert(notes.end(), run.notes.begin(), run.notes.end());
  }
  AddRecordingTimes(runs, &notes);
  if (topology.has_value()) AddTopology(*topology, start, &notes);
  if (!report.has_noise_floor()) {
    notes.push_back("nothing was repeated after its first time: the noise floor is not known");
  }
  AddUntoldParameters(parameters, &notes);
  AddFittedCells(report, &notes);
  AddAssumedMessages(report, &notes);
  AddArrivalSpread(report.arrival_spread(), &notes);
  return notes;
}

}  // namespace meridian
