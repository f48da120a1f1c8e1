#include "astra_bridge/calibration/calibration.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/calibration_notes.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/network_shape.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

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

class Calibrator {
 public:
  Calibrator(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options)
      : runs_(runs), options_(options) {}

  absl::StatusOr<Calibration> Run() {
    MakeCells();
    RETURN_IF_ERROR(ChooseFitted());
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

  // What is held out by --sizes has no say in anything.
  absl::Status ChooseFitted() {
    const std::set<int64_t> wanted(options_.sizes.begin(), options_.sizes.end());
    for (int64_t bytes : wanted) {
      if (sizes_.count(bytes) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--sizes names ", bytes,
                       " bytes, of which there are no transfers; there are ", SomeOf(sizes_)));
    }
    for (const TransferCell& cell : cells_) {
      is_fitted_.push_back(wanted.empty() || wanted.count(cell.bytes) > 0);
      if (is_fitted_.back()) fitted_.push_back(cell);
    }
    const size_t fitted_sizes = wanted.empty() ? sizes_.size() : wanted.size();
    if (fitted_sizes > 1) return absl::OkStatus();
    if (sizes_.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--sizes leaves a single size, ", fitted_[0].bytes,
          " bytes, which tells neither latency nor bandwidth; name several of ", SomeOf(sizes_)));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "all transfers are of ", fitted_[0].bytes,
        " bytes: a single size tells neither latency nor bandwidth; record collectives of "
        "several sizes, from some KiB to some MiB"));
  }

  absl::Status ChooseStart() {
    const int32_t ranks = MostRanks(runs_);
    if (options_.topology.has_value()) {
      start_ = StartOf(*options_.topology, ranks);
      ASSIGN_OR_RETURN(held_out_errors_, FindHeldOutErrors(start_, fitted_));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<ShapeScore> scores, CompareShapes(ranks, fitted_));
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
    ASSIGN_OR_RETURN(model_, FitModel(start_, fitted_));
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
  // Whether each cell is fitted to, indexed by cell, and those that are.
  std::vector<bool> is_fitted_;
  std::vector<TransferCell> fitted_;
  CalibratedModel model_;
  // Times in nanoseconds by the engine alone, and with corrections, indexed by cell.
  std::vector<double> engine_ns_;
  std::vector<double> predicted_ns_;
  // Times in nanoseconds by models that had not seen the cell, by its position; cells that no such
  // model was made for are not there.
  std::map<size_t, double> held_out_ns_;
  // Predictions of the steps left out; empty unless steps were.
  std::vector<Prediction> step_predictions_;
  CalibrationReport report_;
};

}  // namespace

absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options) {
  RETURN_IF_ERROR(CheckRuns(runs, options));
  return Calibrator(runs, options).Run();
}

}  // namespace meridian
