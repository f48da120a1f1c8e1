#include "astra_bridge/calibration/calibration.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/physics.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Tables go on up to so many times the ranks of the largest run.
constexpr int32_t kMaxGrowth = 64;

// Returns how many ranks every node has in runs across nodes; 0 when they differ.
int32_t RanksPerNode(absl::Span<const CalibrationRun> runs) {
  int32_t per_node = 0;
  for (const CalibrationRun& run : runs) {
    if (!run.across_nodes) continue;
    if (per_node != 0 && run.ranks_per_node != per_node) return 0;
    per_node = run.ranks_per_node;
    if (per_node == 0) return 0;
  }
  // Runs within a node may fill it in part.
  for (const CalibrationRun& run : runs) {
    if (!run.across_nodes && per_node != 0 && run.transfers.ranks > per_node) return 0;
  }
  return per_node;
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
    return InvalidArgument(
        "the profiles have no collective whose transfer can be timed (", incomplete,
        " lack members, ", other_kinds, " are of kinds without a model, ", without_transfer,
        " move nothing that is known); it takes all ranks of a run and the bytes "
        "of its collectives");
  }
  if (device_kinds.size() > 1) {
    return InvalidArgument("the runs are on different devices (", absl::StrJoin(device_kinds, ", "),
                           "), whose collectives take different ways; calibrate each by itself");
  }
  if (within_nodes && across_nodes && !options.topology.has_value() && RanksPerNode(runs) == 0) {
    return InvalidArgument(
        "some collectives stay within a node and others cross nodes, so there are two levels, but "
        "nodes have different numbers of ranks, or these are not numbered node by node; give the "
        "network with --topology, one dimension for each level (the devices of a node first)");
  }
  if (within_nodes && across_nodes && options.topology.has_value() &&
      options.topology->network.dimensions.size() == 1) {
    return InvalidArgument(
        "some collectives stay within a node and others cross nodes, so there are two levels; "
        "--topology has a single dimension: give one for each level, or leave it out");
  }
  return absl::OkStatus();
}

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

class Calibrator {
 public:
  Calibrator(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options)
      : runs_(runs), options_(options) {}

  absl::StatusOr<Calibration> Run() {
    MakeCells();
    RETURN_IF_ERROR(ChooseFitted());
    ChooseStart();
    ASSIGN_OR_RETURN(
        by_size_ns_,
        PredictHeldOut(start_, fitted_, MakeFolds(fitted_, Holdout::kSize), options_.progress));
    ASSIGN_OR_RETURN(const std::vector<HeldOutError> errors,
                     FindHeldOutErrors(start_, fitted_, by_size_ns_));
    ASSIGN_OR_RETURN(model_,
                     FitModel(start_, fitted_, {/*with_intervals=*/true, MostExtrapolated()}));
    ASSIGN_OR_RETURN(physical_ns_, PhysicalTimesNs(model_.physics, cells_));
    ASSIGN_OR_RETURN(predicted_ns_,
                     PredictCellsNs(model_.physics.fabric, model_.corrections, cells_));
    RETURN_IF_ERROR(PredictOthers());
    RETURN_IF_ERROR(Summarise());
    for (const CalibratedParameter& fitted : model_.physics.parameters) {
      *report_.add_parameters() = fitted;
    }
    ASSIGN_OR_RETURN(const std::vector<double> fitted_ns, PhysicalTimesNs(model_.physics, fitted_));
    DescribePredictionErrors(fitted_, fitted_ns, errors, &report_);
    DescribeRuns();
    AddNotes();
    return Calibration{std::move(model_.physics.fabric), std::move(model_.corrections),
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

  // What is held out by --sizes has no say in anything.
  absl::Status ChooseFitted() {
    const std::set<int64_t> wanted(options_.sizes.begin(), options_.sizes.end());
    for (int64_t bytes : wanted) {
      if (sizes_.count(bytes) > 0) continue;
      return InvalidArgument("--sizes names ", bytes,
                             " bytes, of which there are no transfers; there are ", SomeOf(sizes_));
    }
    for (const TransferCell& cell : cells_) {
      is_fitted_.push_back(wanted.empty() || wanted.count(cell.bytes) > 0);
      if (is_fitted_.back()) fitted_.push_back(cell);
    }
    const size_t fitted_sizes = wanted.empty() ? sizes_.size() : wanted.size();
    if (fitted_sizes > 1) return absl::OkStatus();
    if (sizes_.size() > 1) {
      return InvalidArgument("--sizes leaves a single size, ", fitted_[0].bytes,
                             " bytes, which tells neither latency nor bandwidth; name several of ",
                             SomeOf(sizes_));
    }
    return InvalidArgument("all transfers are of ", fitted_[0].bytes,
                           " bytes: a single size tells neither latency nor bandwidth; record "
                           "collectives of several sizes, from some KiB to some MiB");
  }

  int32_t MostExtrapolated() const { return std::min(kMaxGrowth * MostRanks(runs_), kMaxNpus); }

  // A level for the ranks of a node where runs have groups within and across nodes.
  void ChooseStart() {
    const int32_t ranks = MostRanks(runs_);
    if (options_.topology.has_value()) {
      start_ = FabricForRanks(*options_.topology, ranks);
      if (start_.system.local_memory_bandwidth <= 0) {
        start_.system.local_memory_bandwidth = kFreeReductions;
      }
      return;
    }
    bool within = false, across = false;
    for (const CalibrationRun& run : runs_) {
      within |= run.within_nodes;
      across |= run.across_nodes;
    }
    const int32_t per_node = RanksPerNode(runs_);
    const bool has_levels = within && across && per_node > 1 && per_node < ranks;
    start_ = AssumedFabric(has_levels ? std::vector<int32_t>{per_node, ranks / per_node}
                                      : std::vector<int32_t>{ranks});
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
    const Folds folds = MakeFolds(cells_, options_.holdout);
    if (folds.empty()) {
      report_.add_notes(
          absl::StrCat("nothing was held out: there are too few to leave one ", rule, " out"));
    }
    if (options_.holdout == Holdout::kSize && sizes_.size() > kMaxSizes) {
      report_.add_notes(absl::StrCat("there are ", sizes_.size(), " sizes: they were held out in ",
                                     folds.size(), " ranges of neighbouring ones"));
    }
    if (options_.holdout == Holdout::kSize) {
      held_out_ns_ = by_size_ns_;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(held_out_ns_, PredictHeldOut(start_, cells_, folds, options_.progress));
    return absl::OkStatus();
  }

  absl::Status Summarise() {
    ASSIGN_OR_RETURN(const std::vector<double> uncalibrated_ns,
                     EngineTimesNs(WithAssumedParameters(start_), cells_));
    std::vector<Prediction> fit, held_out, without_corrections, uncalibrated;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const auto prediction = [&](double predicted_ns) {
        return Prediction{cells_[i].bytes, cells_[i].median_ns, predicted_ns};
      };
      CalibratedCell* cell = AddCell(i);
      if (is_fitted_[i]) {
        fit.push_back(prediction(predicted_ns_[i]));
        without_corrections.push_back(prediction(physical_ns_[i]));
      }
      const auto found = held_out_ns_.find(i);
      if (found != held_out_ns_.end()) {
        held_out.push_back(prediction(found->second));
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
    cell->set_ranks(cells_[i].ranks);
    cell->set_predicted_ns(predicted_ns_[i]);
    cell->set_signed_error(predicted_ns_[i] / cells_[i].median_ns - 1);
    cell->set_fitted(is_fitted_[i]);
    return cell;
  }

  void DescribeRuns() {
    for (const CalibrationRun& run : runs_) {
      CalibratedRun* described = report_.add_runs();
      described->set_folder(run.folder);
      described->set_ranks(run.transfers.ranks);
      described->set_transfers(static_cast<int64_t>(run.transfers.samples.size()));
      for (const std::string& kind : run.device_kinds) described->add_device_kinds(kind);
    }
  }

  void AddNotes() {
    for (const CalibrationRun& run : runs_) {
      for (const std::string& note : run.notes) report_.add_notes(note);
    }
    double most_ranks = 0;
    for (const std::vector<CorrectionPoint>& points : model_.corrections.points) {
      if (!points.empty()) most_ranks = std::max(most_ranks, points.back().ranks);
    }
    if (most_ranks > MostRanks(runs_)) {
      report_.add_notes(absl::StrCat("times of more than ", MostRanks(runs_),
                                     " ranks are extrapolated, up to ", most_ranks));
    }
    if (!report_.has_noise_floor()) {
      report_.add_notes("nothing was repeated after its first time: the noise floor is not known");
    }
    for (const CalibratedParameter& parameter : report_.parameters()) {
      if (parameter.identifiable()) continue;
      report_.add_notes(absl::StrFormat(
          "%s is not known: these transfers do not tell it, and it is taken to be %.6g",
          parameter.name(), parameter.value()));
    }
    if (model_.physics.latency_includes_overhead) {
      report_.add_notes(
          "latency includes what a collective costs once: all have the same number of steps, which "
          "does not tell one from the other");
    }
    std::set<size_t> group_sizes;
    for (const TransferCell& cell : fitted_) {
      if (cell.kind != CollectiveKind::kPointToPoint) group_sizes.insert(cell.participants.size());
    }
    if (group_sizes.size() == 1) {
      report_.add_notes(absl::StrCat(
          "all groups have ", *group_sizes.begin(),
          " ranks: times of other numbers of ranks are extrapolated by the steps of a ring"));
    }
    AddDuplex();
  }

  // Says whether ports do both ways at once what they do one way.
  void AddDuplex() {
    std::vector<double> one_way, both_ways;
    int64_t most_bytes = 0;
    for (const TransferCell& cell : fitted_) {
      if (cell.kind == CollectiveKind::kPointToPoint) most_bytes = std::max(most_bytes, cell.bytes);
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      const TransferCell& cell = cells_[i];
      if (cell.kind != CollectiveKind::kPointToPoint || kLargeSpan * cell.bytes < most_bytes)
        continue;
      (IsOneWay(cell) ? one_way : both_ways).push_back(cell.median_ns / cell.bytes);
    }
    if (one_way.empty() && both_ways.empty()) return;
    if (one_way.empty()) {
      report_.set_factor_of_one_way(model_.assumes_shared_ports ? 2 : 1);
      report_.add_notes(model_.assumes_shared_ports
                            ? "no message went one way, and large ones both ways are slower than "
                              "rings: sends and receives are taken to take turns, so that one way "
                              "lasts half as long; on another kind of machine it may last as long"
                            : "no message went one way: it is taken to last as long as both ways "
                              "at once, as links that are full duplex have it");
      return;
    }
    if (both_ways.empty()) {
      report_.add_notes(
          "no message went both ways at once: whether links are full duplex is not known");
      return;
    }
    report_.add_notes(absl::StrFormat(
        "both ways at once take %.2f times as long as one way (1: full duplex, 2: shared)",
        Median(both_ways) / Median(one_way)));
  }

  const absl::Span<const CalibrationRun> runs_;
  const CalibrationOptions& options_;
  Fabric start_;
  std::vector<TransferCell> cells_;
  std::set<int64_t> sizes_;
  // Whether each cell is fitted to, indexed by cell, and those that are.
  std::vector<bool> is_fitted_;
  std::vector<TransferCell> fitted_;
  // What models without its size say of each fitted cell, by position, in nanoseconds.
  std::map<size_t, double> by_size_ns_;
  CalibratedModel model_;
  // Times in nanoseconds by physics alone, and with corrections, indexed by cell.
  std::vector<double> physical_ns_;
  std::vector<double> predicted_ns_;
  // Times in nanoseconds by models that had not seen the cell, by its position; cells that no such
  // model was made for are not there.
  std::map<size_t, double> held_out_ns_;
  CalibrationReport report_;
};

}  // namespace

absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options) {
  RETURN_IF_ERROR(CheckRuns(runs, options));
  return Calibrator(runs, options).Run();
}

}  // namespace meridian
