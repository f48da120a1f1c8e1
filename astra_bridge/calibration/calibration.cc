#include "astra_bridge/calibration/calibration.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_notes.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/transfers.h"
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

int32_t LargestRun(absl::Span<const CalibrationRun> runs) {
  int32_t ranks = 0;
  for (const CalibrationRun& run : runs) ranks = std::max(ranks, run.transfers.ranks);
  return ranks;
}

std::vector<TransferCell> CellsOf(absl::Span<const CalibrationRun> runs, bool keep_overlapped) {
  std::vector<TransferSamples> samples;
  for (const CalibrationRun& run : runs) samples.push_back(run.transfers);
  CellOptions options;
  options.keep_overlapped = keep_overlapped;
  return MakeTransferCells(samples, options);
}

Fabric StartOf(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options) {
  const int32_t ranks = LargestRun(runs);
  Fabric start = FabricForRanks(options.topology.value_or(AssumedFabric(ranks)), ranks);
  if (start.system.local_memory_bandwidth == 0) {
    start.system.local_memory_bandwidth = kFreeReductions;
  }
  return start;
}

class Calibrator {
 public:
  Calibrator(absl::Span<const CalibrationRun> runs, const CalibrationOptions& options)
      : runs_(runs), options_(options), start_(StartOf(runs, options)) {}

  absl::StatusOr<Calibration> Run() {
    MakeCells();
    RETURN_IF_ERROR(ChooseFitted());
    RETURN_IF_ERROR(FitFitted());
    RETURN_IF_ERROR(PredictOthers());
    RETURN_IF_ERROR(Summarise());
    DescribeParameters();
    ListCorrections(model_.corrections, &report_);
    *report_.mutable_arrival_spread() = MeasureArrivalSpread(cells_);
    *report_.mutable_clock_check() = CheckTransferClocks(runs_);
    DescribeRuns();
    for (const std::string& note :
         CalibrationNotes({runs_, options_.topology.has_value() ? &*options_.topology : nullptr,
                           &start_, model_.parameters.parameters},
                          report_)) {
      report_.add_notes(note);
    }
    return Calibration{std::move(model_.parameters.fabric), std::move(model_.corrections),
                       std::move(report_)};
  }

 private:
  void MakeCells() {
    cells_ = CellsOf(runs_, /*keep_overlapped=*/false);
    if (cells_.empty()) {
      cells_ = CellsOf(runs_, /*keep_overlapped=*/true);
      report_.add_notes(
          "every transfer met another collective of the same rank: times include what they took "
          "from each other");
    }
  }

  absl::Status ChooseFitted() {
    std::set<int64_t> present;
    for (const TransferCell& cell : cells_) present.insert(cell.bytes);
    const std::set<int64_t> wanted(options_.sizes.begin(), options_.sizes.end());
    for (int64_t bytes : wanted) {
      if (present.count(bytes) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--sizes names ", bytes,
                       " bytes, of which there are no transfers; there are ", SomeOf(present)));
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!wanted.empty() && wanted.count(cells_[i].bytes) == 0) continue;
      fitted_.push_back(i);
      fitted_cells_.push_back(cells_[i]);
      fitted_sizes_.insert(cells_[i].bytes);
    }
    if (fitted_sizes_.size() < 2 && present.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--sizes leaves a single size, ", *fitted_sizes_.begin(),
          " bytes, which tells neither latency nor bandwidth; name several of ", SomeOf(present)));
    }
    if (fitted_sizes_.size() < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "all transfers are of ", *fitted_sizes_.begin(),
          " bytes: a single size tells neither latency nor bandwidth; record collectives of "
          "several sizes, from some KiB to some MiB"));
    }
    return absl::OkStatus();
  }

  absl::Status FitFitted() {
    ASSIGN_OR_RETURN(model_, FitModel(start_, fitted_cells_));
    ASSIGN_OR_RETURN(engine_ns_, EngineTimesNs(model_.parameters.fabric, cells_));
    for (size_t i = 0; i < cells_.size(); ++i) {
      predicted_ns_.push_back(
          model_.corrections.CorrectedNs(cells_[i].kind, cells_[i].bytes, engine_ns_[i]));
    }
    return absl::OkStatus();
  }

  absl::Status PredictOthers() {
    held_out_ns_.resize(cells_.size());
    if (fitted_.size() < cells_.size()) {
      report_.set_holdout_rule("sizes not fitted");
      for (size_t i = 0; i < cells_.size(); ++i) held_out_ns_[i] = predicted_ns_[i];
      for (size_t i : fitted_) held_out_ns_[i].reset();
      return absl::OkStatus();
    }
    report_.set_holdout_rule(std::string(HoldoutName(options_.holdout)));
    const std::vector<std::vector<size_t>> folds = MakeFolds(cells_, options_.holdout);
    if (folds.empty()) {
      report_.add_notes(absl::StrCat("nothing was held out: there are too few to leave one ",
                                     HoldoutName(options_.holdout), " out"));
    }
    if (options_.holdout == Holdout::kSize && fitted_sizes_.size() > kMaxSizes) {
      report_.add_notes(absl::StrCat("there are ", fitted_sizes_.size(),
                                     " sizes: they were held out in ", folds.size(),
                                     " ranges of neighbouring ones"));
    }
    ASSIGN_OR_RETURN(const std::vector<HeldOutPrediction> predictions,
                     PredictHeldOut(start_, cells_, folds, [&](size_t done) {
                       if (options_.progress) options_.progress(done, folds.size());
                     }));
    for (const HeldOutPrediction& prediction : predictions) {
      held_out_ns_[prediction.cell] = prediction.predicted_ns;
    }
    return absl::OkStatus();
  }

  absl::Status Summarise() {
    ASSIGN_OR_RETURN(const std::vector<double> uncalibrated_ns,
                     EngineTimesNs(WithAssumedParameters(start_), cells_));
    std::vector<Prediction> fit, held_out, without_corrections, uncalibrated, uncalibrated_fit;
    std::vector<bool> is_fitted(cells_.size());
    for (size_t i : fitted_) is_fitted[i] = true;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const int64_t bytes = cells_[i].bytes;
      const double measured_ns = cells_[i].median_ns;
      if (is_fitted[i]) {
        fit.push_back({bytes, measured_ns, predicted_ns_[i]});
        without_corrections.push_back({bytes, measured_ns, engine_ns_[i]});
        uncalibrated_fit.push_back({bytes, measured_ns, uncalibrated_ns[i]});
      }
      if (held_out_ns_[i].has_value()) {
        held_out.push_back({bytes, measured_ns, *held_out_ns_[i]});
        uncalibrated.push_back({bytes, measured_ns, uncalibrated_ns[i]});
      }
      DescribeCell(i, is_fitted[i]);
    }
    *report_.mutable_fit() = SummariseErrors(fit);
    // Absent rather than perfect.
    if (!held_out.empty()) *report_.mutable_holdout() = SummariseErrors(held_out);
    *report_.mutable_without_corrections() = SummariseErrors(without_corrections);
    *report_.mutable_uncalibrated() =
        SummariseErrors(held_out.empty() ? uncalibrated_fit : uncalibrated);
    const std::optional<double> noise_floor = NoiseFloor(cells_);
    if (noise_floor.has_value()) report_.set_noise_floor(*noise_floor);
    return absl::OkStatus();
  }

  void DescribeCell(size_t i, bool is_fitted) {
    CalibratedCell* cell = report_.add_cells();
    cell->set_kind(std::string(CollectiveKindName(cells_[i].kind)));
    cell->set_bytes(cells_[i].bytes);
    cell->set_group(GroupText(cells_[i]));
    cell->set_group_size(static_cast<int64_t>(cells_[i].participants.size()));
    cell->set_pairs(cells_[i].pairs);
    cell->set_largest_hop(LargestHop(cells_[i]));
    cell->set_protocol(cells_[i].protocol);
    cell->set_repeats(static_cast<int64_t>(cells_[i].transfers_ns.size()));
    cell->set_measured_ns(cells_[i].median_ns);
    cell->set_relative_error(cells_[i].relative_error);
    cell->set_engine_ns(engine_ns_[i]);
    cell->set_predicted_ns(predicted_ns_[i]);
    cell->set_signed_error(predicted_ns_[i] / cells_[i].median_ns - 1);
    if (held_out_ns_[i].has_value()) cell->set_held_out_ns(*held_out_ns_[i]);
    cell->set_fitted(is_fitted);
  }

  void DescribeParameters() {
    const std::vector<ParameterInterval> intervals =
        BootstrapIntervals(model_.parameters, options_.bootstrap);
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
    }
  }

  const absl::Span<const CalibrationRun> runs_;
  const CalibrationOptions& options_;
  const Fabric start_;
  std::vector<TransferCell> cells_;
  // Positions of the cells that are fitted, and copies of them.
  std::vector<size_t> fitted_;
  std::vector<TransferCell> fitted_cells_;
  // The bytes of the fitted cells.
  std::set<int64_t> fitted_sizes_;
  CalibratedModel model_;
  // By cell: the time by the engine alone, with corrections, and by the model that had not seen the
  // cell, if there was one.
  std::vector<double> engine_ns_;
  std::vector<double> predicted_ns_;
  std::vector<std::optional<double>> held_out_ns_;
  CalibrationReport report_;
};

}  // namespace

absl::StatusOr<Calibration> Calibrate(absl::Span<const CalibrationRun> runs,
                                      const CalibrationOptions& options) {
  RETURN_IF_ERROR(CheckRuns(runs, options));
  return Calibrator(runs, options).Run();
}

}  // namespace meridian
