#include "astra_bridge/calibration/simulation_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

absl::Status CheckNetworkSize(absl::Span<const CalibrationRun> runs, const Fabric& fabric) {
  for (const CalibrationRun& run : runs) {
    const NetworkConfig network = FabricForRanks(fabric, run.transfers.ranks).network;
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

void AddCollective(const CalibrationRun& run, const TransferSample& sample,
                   const TransferCell& cell, const Prediction& prediction,
                   SimulationCheckReport* report) {
  if (report->collectives_size() >= kMaxCheckedDetails) return;
  CheckedCollective* collective = report->add_collectives();
  collective->set_run(run.folder);
  collective->set_kind(std::string(CollectiveKindName(sample.kind)));
  collective->set_bytes(sample.bytes);
  collective->set_group(GroupText(cell));
  collective->set_start_ns(sample.start_ns);
  collective->set_measured_ns(sample.transfer_ns);
  collective->set_simulated_ns(prediction.predicted_ns);
  collective->set_signed_error(prediction.signed_error());
  collective->set_overlapped(sample.overlapped);
}

// Returns the cell that was added.
CheckedCell* AddCell(const TransferCell& transfers, const Prediction& prediction,
                     const PredictionIntervals& intervals, SimulationCheckReport* report) {
  CheckedCell* cell = report->add_cells();
  DescribeCell(transfers, cell);
  cell->set_simulated_ns(prediction.predicted_ns);
  cell->set_signed_error(prediction.signed_error());
  if (!intervals.empty()) {
    const double factor = std::exp(intervals.LogFactor(TraitsOf(transfers)));
    cell->set_simulated_low_ns(cell->simulated_ns() / factor);
    cell->set_simulated_high_ns(cell->simulated_ns() * factor);
    CountInside(cell->measured_ns(), cell->simulated_low_ns(), cell->simulated_high_ns(),
                report->mutable_cells_inside());
  }
  for (const std::string& reason : intervals.Beyond(TraitsOf(transfers))) cell->add_reasons(reason);
  return cell;
}

}  // namespace

absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const PredictionIntervals& intervals) {
  CellOptions all;
  all.dropped_repeats = 0;
  all.keep_overlapped = true;
  const std::vector<TransferCell> cells = MakeTransferCells(runs, all);
  if (cells.empty()) {
    return InvalidArgument(
        "the profiles have no collective whose transfer can be timed; name the profiles of all "
        "ranks of a run");
  }
  RETURN_IF_ERROR(CheckNetworkSize(runs, fabric));
  ASSIGN_OR_RETURN(const std::vector<double> simulated_ns,
                   PredictCellsNs(fabric, corrections, cells));
  std::map<CellKey, size_t> positions;
  for (size_t i = 0; i < cells.size(); ++i) positions[cells[i]] = i;
  SimulationCheckReport report;
  std::vector<Prediction> of_collectives, of_cells;
  std::vector<int64_t> overlapped(cells.size());
  for (const CalibrationRun& run : runs) {
    for (const std::string& note : run.notes) report.add_notes(note);
    for (const TransferSample& sample : run.transfers.samples) {
      const size_t i = positions.at(KeyOf(run.transfers, sample));
      overlapped[i] += sample.overlapped ? 1 : 0;
      of_collectives.push_back({sample.bytes, sample.transfer_ns, simulated_ns[i]});
      AddCollective(run, sample, cells[i], of_collectives.back(), &report);
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    of_cells.push_back({cells[i].bytes, cells[i].median_ns, simulated_ns[i]});
    CheckedCell* cell = AddCell(cells[i], of_cells.back(), intervals, &report);
    if (2 * overlapped[i] > static_cast<int64_t>(cells[i].transfers_ns.size())) {
      cell->add_reasons("met other collectives");
    }
  }
  report.set_collectives_total(static_cast<int64_t>(of_collectives.size()));
  *report.mutable_collective_summary() = SummariseErrors(of_collectives);
  *report.mutable_summary() = SummariseErrors(of_cells);
  return report;
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
