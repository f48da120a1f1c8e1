#include "astra_bridge/calibration/simulation_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

class Checker {
 public:
  Checker(absl::Span<const CalibrationRun> runs, const Fabric& fabric,
          const Corrections& corrections, const PredictionIntervals& intervals)
      : runs_(runs), fabric_(fabric), corrections_(corrections), intervals_(intervals) {}

  absl::StatusOr<SimulationCheckReport> Check() {
    RETURN_IF_ERROR(SimulateCells());
    AddNotes();
    CheckCells();
    CheckCollectives();
    return std::move(report_);
  }

 private:
  absl::Status SimulateCells() {
    CellOptions all;
    all.dropped_repeats = 0;
    all.keep_overlapped = true;
    cells_ = MakeTransferCells(runs_, all);
    if (cells_.empty()) {
      return InvalidArgument(
          "the profiles have no collective whose transfer can be timed; name the profiles of all "
          "ranks of a run");
    }
    RETURN_IF_ERROR(CheckNetworkSize());
    ASSIGN_OR_RETURN(simulated_ns_, PredictCellsNs(fabric_, corrections_, cells_));
    for (size_t i = 0; i < cells_.size(); ++i) positions_[KeyOf(cells_[i])] = i;
    return absl::OkStatus();
  }

  absl::Status CheckNetworkSize() const {
    for (const CalibrationRun& run : runs_) {
      const NetworkConfig network = FabricForRanks(fabric_, run.transfers.ranks).network;
      for (const TransferSample& sample : run.transfers.samples) {
        const std::vector<int32_t>& group = run.transfers.groups[sample.group];
        const int32_t last = *std::max_element(group.begin(), group.end());
        if (last < network.npus()) continue;
        return InvalidArgument(network.source, " has ", network.npus(), " NPUs, but rank ", last,
                               " of ", Printable(run.folder),
                               " takes part; give --network a network with at least ",
                               std::max(run.transfers.ranks, last + 1), " NPUs");
      }
    }
    return absl::OkStatus();
  }

  size_t PositionOf(const CalibrationRun& run, const TransferSample& sample) const {
    return positions_.at(KeyOf(run.transfers, sample));
  }

  void AddNotes() {
    for (const CalibrationRun& run : runs_) {
      for (const std::string& note : run.notes) report_.add_notes(note);
    }
  }

  void CheckCells() {
    std::vector<Prediction> all;
    std::vector<int64_t> overlapped(cells_.size());
    for (const CalibrationRun& run : runs_) {
      for (const TransferSample& sample : run.transfers.samples) {
        overlapped[PositionOf(run, sample)] += sample.overlapped ? 1 : 0;
      }
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Prediction prediction = {cells_[i].bytes, cells_[i].median_ns, simulated_ns_[i]};
      all.push_back(prediction);
      CheckedCell* cell = report_.add_cells();
      DescribeCell(cells_[i], cell);
      cell->set_simulated_ns(prediction.predicted_ns);
      cell->set_signed_error(prediction.signed_error());
      if (!intervals_.empty()) {
        const double factor = std::exp(intervals_.LogFactor(TraitsOf(cells_[i])));
        cell->set_simulated_low_ns(cell->simulated_ns() / factor);
        cell->set_simulated_high_ns(cell->simulated_ns() * factor);
        CountInside(cell->measured_ns(), cell->simulated_low_ns(), cell->simulated_high_ns(),
                    report_.mutable_cells_inside());
      }
      for (const std::string& reason : intervals_.Beyond(TraitsOf(cells_[i]))) {
        cell->add_reasons(reason);
      }
      if (2 * overlapped[i] > static_cast<int64_t>(cells_[i].transfers_ns.size())) {
        cell->add_reasons("met other collectives");
      }
    }
    *report_.mutable_summary() = SummariseErrors(all);
  }

  void CheckCollectives() {
    std::vector<Prediction> predictions;
    for (const CalibrationRun& run : runs_) {
      for (const TransferSample& sample : run.transfers.samples) {
        const size_t cell = PositionOf(run, sample);
        predictions.push_back({sample.bytes, sample.transfer_ns, simulated_ns_[cell]});
        if (report_.collectives_size() >= kMaxCheckedDetails) continue;
        CheckedCollective* collective = report_.add_collectives();
        collective->set_run(run.folder);
        collective->set_kind(std::string(CollectiveKindName(sample.kind)));
        collective->set_bytes(sample.bytes);
        collective->set_group(GroupText(cells_[cell]));
        collective->set_start_ns(sample.start_ns);
        collective->set_measured_ns(sample.transfer_ns);
        collective->set_simulated_ns(simulated_ns_[cell]);
        collective->set_signed_error(predictions.back().signed_error());
        collective->set_overlapped(sample.overlapped);
      }
    }
    report_.set_collectives_total(static_cast<int64_t>(predictions.size()));
    *report_.mutable_collective_summary() = SummariseErrors(predictions);
  }

  const absl::Span<const CalibrationRun> runs_;
  const Fabric& fabric_;
  const Corrections& corrections_;
  const PredictionIntervals& intervals_;
  std::vector<TransferCell> cells_;
  // Positions in cells_.
  std::map<CellKey, size_t> positions_;
  // Simulated times in nanoseconds, indexed by cell.
  std::vector<double> simulated_ns_;
  SimulationCheckReport report_;
};

}  // namespace

absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const PredictionIntervals& intervals) {
  return Checker(runs, fabric, corrections, intervals).Check();
}

std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs) {
  // "./run" and "run/" are "run".
  const auto normal = [](const std::string& folder) {
    return (std::filesystem::path(folder) / "").lexically_normal();
  };
  std::vector<std::string> notes;
  std::set<std::string> device_kinds;
  for (const CalibratedRun& calibrated : calibration.runs()) {
    device_kinds.insert(calibrated.device_kinds().begin(), calibrated.device_kinds().end());
  }
  for (const CalibrationRun& run : runs) {
    if (!device_kinds.empty() && run.device_kinds != device_kinds) {
      notes.push_back(Printable(absl::StrCat(
          run.folder, " is on ", absl::StrJoin(run.device_kinds, " and "), ", the calibration on ",
          absl::StrJoin(device_kinds, " and "), ": it is no test of it")));
    }
    const auto is_same = [&](const CalibratedRun& calibrated) {
      return calibrated.ranks() == run.transfers.ranks &&
             calibrated.transfers() == static_cast<int64_t>(run.transfers.samples.size()) &&
             normal(calibrated.folder()) == normal(run.folder);
    };
    if (std::none_of(calibration.runs().begin(), calibration.runs().end(), is_same)) continue;
    notes.push_back(absl::StrCat(Printable(run.folder),
                                 " was used for this calibration, whose report names it with as "
                                 "many transfers: its errors are those of the fit, no test"));
  }
  return notes;
}

}  // namespace meridian
