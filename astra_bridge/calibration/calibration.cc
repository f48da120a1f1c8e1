#include "astra_bridge/calibration/calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Folds = std::vector<std::vector<size_t>>;

// A slope beyond this share, and beyond so many of its standard errors, is worth a note.
constexpr double kNotableSlope = 0.1;
constexpr double kNotableDeviations = 3;
// So is a fitted cell that is off by more than this.
constexpr double kNotableError = 0.3;
// What is not expected of hosts is believed only when its error is smaller by this factor.
constexpr double kLeastAdvantage = 0.9;
// How many times as fast a port does what goes one way as each of what goes both ways, where nobody
// measured it. Single pairs of ranks that share a host were seen to be twice as fast; in six jobs,
// with several at once, it was 1.0 to 1.7 times.
constexpr double kOneWayAdvantage = 1.6;
// Repeats of smaller transfers scatter more: what a host does beside them weighs more.
constexpr int64_t kSmallBytes = 65536;
constexpr int kSpreadQuantiles = 20;
// Repeats beyond these shares are hiccups of the machine, which come too seldom to be drawn.
constexpr double kTail = 0.05;
// How many parts sizes are held out in when shapes are compared.
constexpr size_t kShapeSizeFolds = 4;

// In the order of Holdout.
constexpr absl::string_view kHoldoutNames[] = {"size", "op", "group", "step"};

// Returns the folds of all sizes but the smallest and the largest, from the cells of each size.
Folds MakeSizeFolds(const std::map<int64_t, std::vector<size_t>>& by_size) {
  if (by_size.size() < 3) return {};
  const size_t between = by_size.size() - 2;
  Folds folds(by_size.size() > kMaxSizes ? kMaxSizeFolds : between);
  size_t sizes = 0;
  for (auto size = std::next(by_size.begin()); size != std::prev(by_size.end()); ++size) {
    std::vector<size_t>& fold = folds[(++sizes * folds.size() - 1) / between];
    fold.insert(fold.end(), size->second.begin(), size->second.end());
  }
  for (std::vector<size_t>& fold : folds) std::sort(fold.begin(), fold.end());
  return folds;
}

absl::Status CheckRuns(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options) {
  std::set<std::string> device_kinds;
  bool within_nodes = false, across_nodes = false;
  int64_t samples = 0, incomplete = 0, other_kinds = 0, without_transfer = 0;
  for (const CalibrationRun& run : runs) {
    device_kinds.insert(run.device_kinds.begin(), run.device_kinds.end());
    within_nodes |= run.within_nodes;
    across_nodes |= run.across_nodes;
    samples += static_cast<int64_t>(run.transfers.samples.size());
    incomplete += run.transfers.incomplete;
    other_kinds += run.transfers.other_kinds;
    without_transfer += run.transfers.without_transfer;
  }
  if (samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the profiles have no collective whose transfer can be timed (", incomplete,
                     " lack members, ", other_kinds, " are of kinds without a model, ",
                     without_transfer, " move nothing); name the profiles of all ranks of a run"));
  }
  if (device_kinds.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the runs are on different devices (", absl::StrJoin(device_kinds, ", "),
                     "), whose collectives take different ways; calibrate each by itself"));
  }
  const bool one_dimension =
      !options.topology.has_value() || options.topology->network.dimensions.size() == 1;
  if (within_nodes && across_nodes && one_dimension) {
    return absl::InvalidArgumentError(
        "some collectives stay within a node and others cross nodes, so there are two fabrics; "
        "give the network with --topology, one dimension for each (the devices of a node first)");
  }
  return absl::OkStatus();
}

// Lists the first of the sizes, for messages.
std::string SomeOf(const std::set<int64_t>& sizes) {
  constexpr size_t kShown = 20;
  std::vector<int64_t> shown(sizes.begin(),
                             std::next(sizes.begin(), std::min(kShown, sizes.size())));
  const std::string list = absl::StrJoin(shown, ", ");
  if (sizes.size() <= kShown) return list;
  return absl::StrCat(list, " and ", sizes.size() - kShown, " more");
}

int32_t MostRanks(absl::Span<const CalibrationRun> runs) {
  int32_t ranks = 0;
  for (const CalibrationRun& run : runs) ranks = std::max(ranks, run.transfers.ranks);
  return ranks;
}

// Returns the cells of groups within larger runs by how far their members lie apart: of all ranks
// there is but one placement.
std::map<int64_t, std::vector<size_t>> FindPlacements(absl::Span<const TransferCell> cells) {
  std::map<int64_t, std::vector<size_t>> by_hop;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].kind == CollectiveKind::kPointToPoint ||
        static_cast<int32_t>(cells[i].participants.size()) == cells[i].ranks) {
      continue;
    }
    by_hop[LargestHop(cells[i])].push_back(i);
  }
  return by_hop;
}

// Returns what is held out in turn to compare shapes: sizes in a few parts, numbers of ranks, and
// groups by how far their members lie apart.
Folds MakeShapeFolds(absl::Span<const TransferCell> cells) {
  std::set<int64_t> sizes;
  for (const TransferCell& cell : cells) sizes.insert(cell.bytes);
  std::map<int64_t, std::vector<size_t>> by_hop = FindPlacements(cells);
  Folds folds(kShapeSizeFolds);
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t place = std::distance(sizes.begin(), sizes.find(cells[i].bytes));
    const bool is_end = place == 0 || place + 1 == sizes.size();
    if (!is_end) folds[place % kShapeSizeFolds].push_back(i);
  }
  const Folds groups = MakeFolds(cells, Holdout::kGroup);
  folds.insert(folds.end(), groups.begin(), groups.end());
  if (by_hop.size() > 1) {
    for (auto& [hop, held] : by_hop) folds.push_back(std::move(held));
  }
  folds.erase(std::remove_if(folds.begin(), folds.end(),
                             [&](const std::vector<size_t>& fold) {
                               return fold.empty() || fold.size() == cells.size();
                             }),
              folds.end());
  return folds;
}

// The algorithms that a kind may run by, in any group: trees are for all ranks only. Of direct ones
// a rank sends to all others at once, or to one after the other. The first is what libraries do
// between hosts.
std::vector<CollectiveAlgorithm> AlgorithmsFor(CollectiveKind kind) {
  using Kind = CollectiveAlgorithm::Kind;
  const CollectiveAlgorithm ring{Kind::kRing}, direct{Kind::kDirect}, one_by_one{Kind::kDirect, 1};
  if (kind == CollectiveKind::kAllToAll) return {one_by_one, direct, ring};
  return {ring, one_by_one, direct};
}

// Returns how far the ratios of measured to engine time of one size differ between groups, in the
// mean: corrections make up for all else. Nullopt where no size has several groups.
std::optional<double> DifferenceOfGroups(absl::Span<const TransferCell> cells,
                                         absl::Span<const double> engine_ns) {
  std::map<int64_t, std::vector<double>> by_size;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_size[cells[i].bytes].push_back(std::log(cells[i].median_ns / engine_ns[i]));
  }
  std::vector<double> differences;
  for (const auto& [bytes, ratios] : by_size) {
    if (ratios.size() < 2) continue;
    for (const double ratio : ratios) differences.push_back(std::abs(ratio - Mean(ratios)));
  }
  if (differences.empty()) return std::nullopt;
  return Mean(differences);
}

// Gives each kind the algorithm whose times change with the number and the places of ranks as the
// measured ones do: the first of AlgorithmsFor unless another is better by kLeastAdvantage. The
// fabric has one dimension.
absl::Status ChooseAlgorithms(absl::Span<const TransferCell> cells, Fabric* fabric) {
  for (size_t kind = 0; kind < kSimulatedCollectives; ++kind) {
    fabric->system.algorithms[kind][0] = AlgorithmsFor(static_cast<CollectiveKind>(kind))[0];
  }
  std::map<CollectiveKind, std::vector<TransferCell>> by_kind;
  for (const TransferCell& cell : cells) {
    if (cell.kind != CollectiveKind::kPointToPoint) by_kind[cell.kind].push_back(cell);
  }
  ASSIGN_OR_RETURN(const ParameterFit fit, FitParameters(*fabric, cells));
  for (const auto& [kind, of_kind] : by_kind) {
    const size_t k = static_cast<size_t>(kind);
    std::optional<double> least;
    for (const CollectiveAlgorithm& algorithm : AlgorithmsFor(kind)) {
      Fabric candidate = fit.fabric;
      candidate.system.algorithms[k][0] = algorithm;
      ASSIGN_OR_RETURN(const std::vector<double> engine_ns, EngineTimesNs(candidate, of_kind));
      const std::optional<double> difference = DifferenceOfGroups(of_kind, engine_ns);
      if (!difference.has_value()) break;
      if (least.has_value() && *difference >= *least * kLeastAdvantage) continue;
      least = difference;
      fabric->system.algorithms[k][0] = algorithm;
    }
  }
  return absl::OkStatus();
}

Fabric StartOf(const Fabric& shape, int32_t ranks) {
  Fabric start = FabricForRanks(shape, ranks);
  if (start.system.local_memory_bandwidth == 0) {
    start.system.local_memory_bandwidth = kFreeReductions;
  }
  return start;
}

// Returns the ratios of messages that take as long as the engine says with so many times the
// bandwidth, where the points are those of messages with the fabric's own.
absl::StatusOr<std::vector<CorrectionPoint>> WithBandwidthTimes(
    double factor, const Fabric& fabric, const std::vector<CorrectionPoint>& points) {
  Fabric other = fabric;
  for (NetworkDimension& dimension : other.network.dimensions) dimension.bytes_per_ns *= factor;
  std::vector<TransferCell> cells;
  for (const CorrectionPoint& point : points) {
    TransferCell& cell = cells.emplace_back();
    cell.kind = CollectiveKind::kPointToPoint;
    cell.bytes = point.bytes;
    cell.ranks = fabric.network.npus();
    cell.participants = {0, 1};
    cell.pairs = 1;
  }
  ASSIGN_OR_RETURN(const std::vector<double> own_ns, EngineTimesNs(fabric, cells));
  ASSIGN_OR_RETURN(const std::vector<double> other_ns, EngineTimesNs(other, cells));
  std::vector<CorrectionPoint> result = points;
  for (size_t i = 0; i < points.size(); ++i) result[i].ratio *= other_ns[i] / own_ns[i];
  return result;
}

// Returns the points divided by what others say of their sizes.
std::vector<CorrectionPoint> OverPoints(const std::vector<CorrectionPoint>& points,
                                        const std::vector<CorrectionPoint>& others) {
  std::vector<CorrectionPoint> result = points;
  for (CorrectionPoint& point : result) {
    point.ratio /= RatioAt(others, point.bytes, point.ranks);
  }
  return result;
}

// Fits without some of the cells in turn, as MakeShapeFolds says, and returns what these were off
// by.
absl::StatusOr<std::vector<HeldOutError>> FindHeldOutErrors(const Fabric& start,
                                                            absl::Span<const TransferCell> cells) {
  std::vector<HeldOutError> errors;
  for (const std::vector<size_t>& fold : MakeShapeFolds(cells)) {
    ASSIGN_OR_RETURN(const auto predicted_ns, PredictHeldOut(start, cells, {fold}, nullptr));
    std::map<CollectiveKind, std::set<double>> seen_ranks;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (std::binary_search(fold.begin(), fold.end(), i)) continue;
      seen_ranks[cells[i].kind].insert(EffectiveRanksOf(cells[i]));
    }
    for (const auto& [i, time_ns] : predicted_ns) {
      HeldOutError& error = errors.emplace_back();
      error.bytes = cells[i].bytes;
      error.log_error = std::log(time_ns / cells[i].median_ns);
      error.doublings = std::nullopt;
      for (const double ranks : seen_ranks[cells[i].kind]) {
        const double doublings = std::abs(std::log2(EffectiveRanksOf(cells[i]) / ranks));
        error.doublings = std::min(error.doublings.value_or(doublings), doublings);
      }
    }
  }
  return errors;
}

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
  if (first_ns <= 0 || last_ns < first_ns || last_ns - first_ns <= kSameSittingNs) return;
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

class Calibrator {
 public:
  Calibrator(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options)
      : runs_(runs), options_(options) {}

  absl::StatusOr<Calibration> Run() {
    MakeCells();
    RETURN_IF_ERROR(ChooseStart());
    RETURN_IF_ERROR(FitChosen());
    RETURN_IF_ERROR(PredictOthers());
    RETURN_IF_ERROR(Summarise());
    DescribeParameters();
    ListCorrections(model_.corrections, &report_);
    *report_.mutable_arrival_spread() = MeasureArrivalSpread(cells_);
    for (const TransferSpread& spread : MeasureSpreads(cells_)) *report_.add_spreads() = spread;
    const bool on_processors = runs_[0].device_kinds.count("CPU") > 0;
    for (const PredictionError& error : MeasurePredictionErrors(held_out_errors_, on_processors)) {
      *report_.add_prediction_errors() = error;
    }
    *report_.mutable_clock_check() = CheckTransferClocks(runs_);
    DescribeRuns();
    for (const std::string& note : CalibrationNotes(runs_, options_.topology, start_,
                                                    model_.parameters.parameters, report_)) {
      report_.add_notes(note);
    }
    return Calibration{std::move(model_.parameters.fabric), std::move(model_.corrections),
                       std::move(report_)};
  }

 private:
  void MakeCells() {
    CellOptions options;
    cells_ = MakeTransferCells(runs_, options);
    if (cells_.empty()) {
      options.keep_overlapped = true;
      cells_ = MakeTransferCells(runs_, options);
      report_.add_notes(
          "every transfer met another collective of the same rank: times include what they took "
          "from each other");
    }
    for (const TransferCell& cell : cells_) sizes_.insert(cell.bytes);
  }

  absl::Status ChooseStart() {
    const int32_t ranks = MostRanks(runs_);
    // What is held out by --sizes has no say.
    const std::set<int64_t> wanted(options_.sizes.begin(), options_.sizes.end());
    std::vector<TransferCell> seen;
    for (const TransferCell& cell : cells_) {
      if (wanted.empty() || wanted.count(cell.bytes) > 0) seen.push_back(cell);
    }
    // Sizes that do not occur are refused below.
    if (seen.empty()) seen = cells_;
    if (options_.topology.has_value()) {
      start_ = StartOf(*options_.topology, ranks);
      ASSIGN_OR_RETURN(held_out_errors_, FindHeldOutErrors(start_, seen));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<ShapeScore> scores, CompareShapes(ranks, seen));
    for (const ShapeScore& score : scores) {
      ComparedShape* shape = report_.add_shapes();
      shape->set_topology(std::string(BlockShapeName(score.start.network.dimensions[0].shape)));
      for (size_t kind = 0; kind < kSimulatedCollectives; ++kind) {
        shape->add_algorithms(
            absl::StrCat(CollectiveKindName(static_cast<CollectiveKind>(kind)), " ",
                         CollectiveAlgorithmName(score.start.system.algorithms[kind][0])));
      }
      shape->set_held_out_error(score.MeanError());
      shape->set_chosen(&score == &scores[0]);
    }
    start_ = scores[0].start;
    held_out_errors_ = std::move(scores[0].errors);
    return absl::OkStatus();
  }

  absl::Status FitChosen() {
    std::set<int64_t> fitted_sizes;
    const std::set<int64_t> wanted(options_.sizes.begin(), options_.sizes.end());
    for (int64_t bytes : wanted) {
      if (sizes_.count(bytes) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--sizes names ", bytes,
                       " bytes, of which there are no transfers; there are ", SomeOf(sizes_)));
    }
    std::vector<TransferCell> fitted;
    for (const TransferCell& cell : cells_) {
      is_fitted_.push_back(wanted.empty() || wanted.count(cell.bytes) > 0);
      if (!is_fitted_.back()) continue;
      fitted.push_back(cell);
      fitted_sizes.insert(cell.bytes);
    }
    if (fitted_sizes.size() < 2 && sizes_.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--sizes leaves a single size, ", *fitted_sizes.begin(),
          " bytes, which tells neither latency nor bandwidth; name several of ", SomeOf(sizes_)));
    }
    if (fitted_sizes.size() < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all transfers are of ", *fitted_sizes.begin(),
          " bytes: a single size tells neither latency nor bandwidth; record collectives of "
          "several sizes, from some KiB to some MiB"));
    }
    ASSIGN_OR_RETURN(model_, FitModel(start_, fitted));
    ASSIGN_OR_RETURN(engine_ns_, EngineTimesNs(model_.parameters.fabric, cells_));
    ASSIGN_OR_RETURN(predicted_ns_,
                     PredictCellsNs(model_.parameters.fabric, model_.corrections, cells_));
    return absl::OkStatus();
  }

  absl::Status PredictOthers() {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!is_fitted_[i]) held_out_ns_[i] = predicted_ns_[i];
    }
    if (!held_out_ns_.empty()) {
      report_.set_holdout_rule("sizes not fitted");
      return absl::OkStatus();
    }
    const std::string rule(HoldoutName(options_.holdout));
    report_.set_holdout_rule(rule);
    if (options_.holdout == Holdout::kStep) return PredictSteps();
    const Folds folds = MakeFolds(cells_, options_.holdout);
    if (folds.empty()) {
      report_.add_notes(
          absl::StrCat("nothing was held out: there are too few to leave one ", rule, " out"));
    }
    if (options_.holdout == Holdout::kSize && sizes_.size() > kMaxSizes) {
      report_.add_notes(absl::StrCat("there are ", sizes_.size(), " sizes: they were held out in ",
                                     folds.size(), " ranges of neighbouring ones"));
    }
    ASSIGN_OR_RETURN(held_out_ns_, PredictHeldOut(start_, cells_, folds, options_.progress));
    return absl::OkStatus();
  }

  // Fits to every second step, and predicts the others; then the other way round.
  absl::Status PredictSteps() {
    std::map<CellKey, size_t> positions;
    for (size_t i = 0; i < cells_.size(); ++i) positions[KeyOf(cells_[i])] = i;
    for (const bool from_second : {false, true}) {
      const std::vector<TransferCell> seen = MakeTransferCells(EverySecondStep(runs_, from_second));
      CellOptions all;
      all.dropped_repeats = 0;
      const std::vector<TransferCell> held =
          MakeTransferCells(EverySecondStep(runs_, !from_second), all);
      if (seen.empty() || held.empty()) {
        return absl::InvalidArgumentError(
            "--holdout=step leaves steps out, but the programs mark no steps, or a single one; use "
            "jax.profiler.StepTraceAnnotation around each step, or hold out sizes");
      }
      ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start_, seen));
      ASSIGN_OR_RETURN(const std::vector<double> held_ns,
                       PredictCellsNs(model.parameters.fabric, model.corrections, held));
      for (size_t i = 0; i < held.size(); ++i) {
        step_predictions_.push_back({held[i].bytes, held[i].median_ns, held_ns[i]});
        const auto found = positions.find(KeyOf(held[i]));
        if (found != positions.end()) held_out_ns_[found->second] = held_ns[i];
      }
    }
    return absl::OkStatus();
  }

  absl::Status Summarise() {
    ASSIGN_OR_RETURN(const std::vector<double> uncalibrated_ns,
                     EngineTimesNs(WithAssumedParameters(start_), cells_));
    std::vector<Prediction> fit, without_corrections, uncalibrated;
    std::vector<Prediction> held_out = step_predictions_;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const auto prediction = [&](double predicted_ns) {
        return Prediction{cells_[i].bytes, cells_[i].median_ns, predicted_ns};
      };
      CalibratedCell* cell = AddCell(i);
      if (is_fitted_[i]) {
        fit.push_back(prediction(predicted_ns_[i]));
        without_corrections.push_back(prediction(engine_ns_[i]));
      }
      const auto found = held_out_ns_.find(i);
      if (found != held_out_ns_.end()) {
        if (step_predictions_.empty()) held_out.push_back(prediction(found->second));
        cell->set_held_out_ns(found->second);
      }
      if (held_out_ns_.empty() || found != held_out_ns_.end()) {
        uncalibrated.push_back(prediction(uncalibrated_ns[i]));
      }
    }
    *report_.mutable_fit() = SummariseErrors(fit);
    // Absent rather than perfect.
    if (!held_out.empty()) *report_.mutable_holdout() = SummariseErrors(held_out);
    *report_.mutable_without_corrections() = SummariseErrors(without_corrections);
    *report_.mutable_uncalibrated() = SummariseErrors(uncalibrated);
    const std::optional<double> noise_floor = NoiseFloor(cells_);
    if (noise_floor.has_value()) report_.set_noise_floor(*noise_floor);
    return absl::OkStatus();
  }

  CalibratedCell* AddCell(size_t i) {
    CalibratedCell* cell = report_.add_cells();
    DescribeCell(cells_[i], cell);
    cell->set_group_size(static_cast<int64_t>(cells_[i].participants.size()));
    cell->set_ranks(cells_[i].ranks);
    cell->set_pairs(cells_[i].pairs);
    cell->set_largest_hop(LargestHop(cells_[i]));
    if (cells_[i].pause_ns.has_value()) cell->set_pause_ns(*cells_[i].pause_ns);
    cell->set_relative_error(cells_[i].relative_error);
    cell->set_engine_ns(engine_ns_[i]);
    cell->set_predicted_ns(predicted_ns_[i]);
    cell->set_signed_error(predicted_ns_[i] / cells_[i].median_ns - 1);
    cell->set_fitted(is_fitted_[i]);
    return cell;
  }

  void DescribeParameters() {
    const std::vector<ParameterInterval> intervals = BootstrapIntervals(model_.parameters);
    size_t next = 0;
    for (const FittedParameter& fitted : model_.parameters.parameters) {
      CalibratedParameter* parameter = report_.add_parameters();
      parameter->set_name(ParameterName(fitted.parameter));
      parameter->set_value(fitted.value);
      parameter->set_identifiable(fitted.identifiable);
      parameter->set_kept(fitted.kept);
      if (!fitted.identifiable) continue;
      parameter->set_low(intervals[next].low);
      parameter->set_high(intervals[next].high);
      ++next;
    }
  }

  void DescribeRuns() {
    for (const CalibrationRun& run : runs_) {
      CalibratedRun* described = report_.add_runs();
      described->set_folder(run.folder);
      described->set_ranks(run.transfers.ranks);
      described->set_transfers(static_cast<int64_t>(run.transfers.samples.size()));
      described->set_overlapped(
          std::count_if(run.transfers.samples.begin(), run.transfers.samples.end(),
                        [](const TransferSample& sample) { return sample.overlapped; }));
      described->set_incomplete(run.transfers.incomplete);
      described->set_other_kinds(run.transfers.other_kinds);
      described->set_without_transfer(run.transfers.without_transfer);
      for (const std::string& kind : run.device_kinds) described->add_device_kinds(kind);
      described->set_recorded_ns(run.recorded_ns);
    }
  }

  const absl::Span<const CalibrationRun> runs_;
  const CalibrationOptions& options_;
  Fabric start_;
  std::vector<HeldOutError> held_out_errors_;
  std::vector<TransferCell> cells_;
  // The bytes of the cells.
  std::set<int64_t> sizes_;
  std::vector<bool> is_fitted_;
  CalibratedModel model_;
  // By cell: the time by the engine alone, and with corrections.
  std::vector<double> engine_ns_;
  std::vector<double> predicted_ns_;
  // By position of the cell: the time by a model that had not seen it, if there was one.
  std::map<size_t, double> held_out_ns_;
  // Of steps left out; empty unless these were.
  std::vector<Prediction> step_predictions_;
  CalibrationReport report_;
};

}  // namespace

absl::StatusOr<CalibratedModel> FitModel(const Fabric& start,
                                         absl::Span<const TransferCell> cells) {
  // Messages one way tell another bandwidth than what goes both ways, as collectives do.
  std::vector<TransferCell> both_ways;
  for (const TransferCell& cell : cells) {
    if (!IsOneWay(cell)) both_ways.push_back(cell);
  }
  CalibratedModel model;
  ASSIGN_OR_RETURN(
      model.parameters,
      FitParameters(start, both_ways.empty() ? cells : absl::MakeConstSpan(both_ways)));
  ASSIGN_OR_RETURN(const std::vector<double> engine_ns,
                   EngineTimesNs(model.parameters.fabric, cells));
  model.corrections = FitCorrections(cells, engine_ns);
  RETURN_IF_ERROR(AssumeUnmeasuredMessages(model.parameters.fabric, &model.corrections));
  return model;
}

Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns) {
  std::map<std::tuple<CollectiveKind, bool, double, int64_t>, std::vector<size_t>> by_size;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_size[{cells[i].kind, IsOneWay(cells[i]), EffectiveRanksOf(cells[i]), cells[i].bytes}]
        .push_back(i);
  }
  Corrections corrections;
  for (auto size = by_size.begin(); size != by_size.end();) {
    const auto [kind, is_one_way, ranks, smallest_bytes] = size->first;
    const double end_bytes = kSameSizeFactor * static_cast<double>(smallest_bytes);
    std::vector<double> log_bytes, log_ratios;
    const auto goes_on = [&, curve = std::tie(kind, is_one_way, ranks)] {
      if (size == by_size.end()) return false;
      const auto& [next_kind, next_is_one_way, next_ranks, bytes] = size->first;
      return std::tie(next_kind, next_is_one_way, next_ranks) == curve &&
             static_cast<double>(bytes) < end_bytes;
    };
    do {
      for (size_t i : size->second) {
        log_bytes.push_back(std::log(static_cast<double>(cells[i].bytes)));
        log_ratios.push_back(std::log(cells[i].median_ns / engine_ns[i]));
      }
      ++size;
    } while (goes_on());
    (is_one_way ? corrections.one_way : corrections.points[static_cast<size_t>(kind)])
        .push_back({std::llround(std::exp(Mean(log_bytes))), std::exp(Mean(log_ratios)), ranks});
  }
  return corrections;
}

absl::Status AssumeUnmeasuredMessages(const Fabric& fabric, Corrections* corrections) {
  std::vector<CorrectionPoint>& both_ways =
      corrections->points[static_cast<size_t>(CollectiveKind::kPointToPoint)];
  std::vector<CorrectionPoint>& one_way = corrections->one_way;
  if (both_ways.empty() && one_way.empty()) return absl::OkStatus();
  if (both_ways.empty()) {
    ASSIGN_OR_RETURN(both_ways, WithBandwidthTimes(1 / kOneWayAdvantage, fabric, one_way));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<CorrectionPoint> assumed,
                   WithBandwidthTimes(kOneWayAdvantage, fabric, both_ways));
  if (!one_way.empty()) {
    // What was measured over what is assumed, at the sizes that were measured.
    const std::vector<CorrectionPoint> scales = OverPoints(one_way, assumed);
    for (CorrectionPoint& point : assumed) {
      point.ratio *= RatioAt(scales, point.bytes, point.ranks);
    }
    for (const CorrectionPoint& measured : one_way) {
      assumed.erase(
          std::remove_if(assumed.begin(), assumed.end(),
                         [&](const CorrectionPoint& point) {
                           return point.ranks == measured.ranks &&
                                  std::abs(std::log(static_cast<double>(point.bytes) /
                                                    static_cast<double>(measured.bytes))) <
                                      std::log(kSameSizeFactor);
                         }),
          assumed.end());
      assumed.push_back(measured);
    }
    std::sort(assumed.begin(), assumed.end(), IsBefore);
  }
  one_way = std::move(assumed);
  return absl::OkStatus();
}

absl::string_view HoldoutName(Holdout holdout) {
  return kHoldoutNames[static_cast<size_t>(holdout)];
}

std::optional<Holdout> HoldoutFromName(absl::string_view name) {
  const auto found = std::find(std::begin(kHoldoutNames), std::end(kHoldoutNames), name);
  if (found == std::end(kHoldoutNames)) return std::nullopt;
  return static_cast<Holdout>(found - std::begin(kHoldoutNames));
}

Folds MakeFolds(absl::Span<const TransferCell> cells, Holdout holdout) {
  const bool by_run = std::any_of(cells.begin(), cells.end(), [&](const TransferCell& cell) {
    return cell.ranks != cells[0].ranks;
  });
  std::map<int64_t, std::vector<size_t>> by_key;
  for (size_t i = 0; i < cells.size(); ++i) {
    int64_t key = cells[i].bytes;
    if (holdout == Holdout::kKind) key = static_cast<int64_t>(cells[i].kind);
    if (holdout == Holdout::kGroup) {
      // Between two ranks whatever the group: no number of ranks to be left out by.
      if (!by_run && cells[i].kind == CollectiveKind::kPointToPoint) continue;
      key = by_run ? cells[i].ranks : static_cast<int64_t>(cells[i].participants.size());
    }
    by_key[key].push_back(i);
  }
  if (holdout == Holdout::kSize) return MakeSizeFolds(by_key);
  Folds folds;
  if (by_key.size() < 2 || holdout == Holdout::kStep) return folds;
  for (auto& [key, held] : by_key) folds.push_back(std::move(held));
  return folds;
}

absl::StatusOr<std::map<size_t, double>> PredictHeldOut(const Fabric& start,
                                                        absl::Span<const TransferCell> cells,
                                                        absl::Span<const std::vector<size_t>> folds,
                                                        const FitProgress& progress) {
  std::map<size_t, double> predicted_ns;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (progress) progress(f, folds.size());
    std::vector<TransferCell> rest, held;
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_held = std::binary_search(folds[f].begin(), folds[f].end(), i);
      (is_held ? held : rest).push_back(cells[i]);
    }
    ASSIGN_OR_RETURN(const CalibratedModel model, FitModel(start, rest));
    ASSIGN_OR_RETURN(const std::vector<double> held_ns,
                     PredictCellsNs(model.parameters.fabric, model.corrections, held));
    for (size_t i = 0; i < held_ns.size(); ++i) predicted_ns[folds[f][i]] = held_ns[i];
  }
  return predicted_ns;
}

double ShapeScore::MeanError() const {
  std::vector<double> sizes;
  for (const HeldOutError& error : errors) sizes.push_back(std::abs(error.log_error));
  return sizes.empty() ? 0 : Mean(sizes);
}

absl::StatusOr<std::vector<ShapeScore>> CompareShapes(int32_t ranks,
                                                      absl::Span<const TransferCell> cells) {
  std::vector<ShapeScore> scores;
  std::vector<BlockShape> shapes = {BlockShape::kFullyConnected, BlockShape::kSwitch};
  if (FindPlacements(cells).size() > 1) shapes.push_back(BlockShape::kRing);
  for (const BlockShape shape : shapes) {
    Fabric start = StartOf(AssumedFabric(ranks, shape), ranks);
    RETURN_IF_ERROR(ChooseAlgorithms(cells, &start));
    ASSIGN_OR_RETURN(std::vector<HeldOutError> errors, FindHeldOutErrors(start, cells));
    scores.push_back({std::move(start), std::move(errors)});
  }
  std::stable_sort(scores.begin(), scores.end(), [](const ShapeScore& a, const ShapeScore& b) {
    const auto weighed = [](const ShapeScore& score) {
      const bool is_expected =
          score.start.network.dimensions[0].shape == BlockShape::kFullyConnected;
      return is_expected ? score.MeanError() : score.MeanError() / kLeastAdvantage;
    };
    return weighed(a) < weighed(b);
  });
  return scores;
}

absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options) {
  RETURN_IF_ERROR(CheckRuns(runs, options));
  return Calibrator(runs, options).Run();
}

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
