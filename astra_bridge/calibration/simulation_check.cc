#include "astra_bridge/calibration/simulation_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/error_summary.h"
#include "astra_bridge/calibration/number_text.h"
#include "astra_bridge/calibration/robust_statistics.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/corrected_timing.h"
#include "astra_bridge/embedded_timing.h"
#include "astra_bridge/fabric_set.h"
#include "astra_bridge/network_timing.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/snapshot_collector.h"
#include "xla_profiler/util/csv_field.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;
// Middle halves of repeats that span more than this factor have another cause than the network:
// a device in time slices, or work of others.
constexpr double kUnsteadyFactor = 1.5;
constexpr char kUnsteady[] = "unsteady repeats (time slicing or other work)";
// Different collectives that all take the same time, and far more than simulated, wait for
// something that comes at intervals: the device's time slices.
constexpr double kSameTime = 0.03;
constexpr double kFarMore = 2;
constexpr int kEnoughAlike = 2;
constexpr char kSliced[] = "takes what others take (time slicing)";
constexpr char kOverlapped[] = "met other collectives";

class Checker {
 public:
  Checker(absl::Span<const CalibrationRun> runs, const Fabric& fabric,
          const Corrections& corrections, const SimulationCheckOptions& options)
      : runs_(runs), fabric_(fabric), corrections_(corrections), options_(options) {}

  absl::StatusOr<SimulationCheckReport> Check() {
    RETURN_IF_ERROR(SimulateCells());
    CheckCells();
    CheckCollectives();
    for (const CalibrationRun& run : runs_) RETURN_IF_ERROR(CheckSnapshots(run));
    *report_.mutable_snapshot_summary() = SummariseErrors(snapshot_predictions_);
    return std::move(report_);
  }

 private:
  absl::Status SimulateCells() {
    std::vector<TransferSamples> transfers;
    for (const CalibrationRun& run : runs_) transfers.push_back(run.transfers);
    CellOptions all;
    all.dropped_repeats = 0;
    all.keep_overlapped = true;
    cells_ = MakeTransferCells(transfers, all);
    if (cells_.empty()) {
      return absl::InvalidArgumentError(
          "the profiles have no collective whose transfer can be timed; name the profiles of all "
          "ranks of a run");
    }
    ASSIGN_OR_RETURN(simulated_ns_, PredictCellsNs(fabric_, corrections_, cells_));
    for (size_t i = 0; i < cells_.size(); ++i) positions_[KeyOf(cells_[i])] = i;
    overlapped_.resize(cells_.size());
    for (const CalibrationRun& run : runs_) {
      for (const TransferSample& sample : run.transfers.samples) {
        overlapped_[PositionOf(run, sample)] += sample.overlapped ? 1 : 0;
      }
    }
    return absl::OkStatus();
  }

  size_t PositionOf(const CalibrationRun& run, const TransferSample& sample) const {
    return positions_.at(KeyOf(run.transfers, sample));
  }

  std::vector<std::string> ReasonsOf(size_t cell) const {
    std::vector<std::string> reasons;
    if (options_.range.has_value()) reasons = options_.range->Beyond(cells_[cell]);
    if (2 * overlapped_[cell] > static_cast<int64_t>(cells_[cell].transfers_ns.size())) {
      reasons.push_back(kOverlapped);
    }
    const std::vector<double>& transfers_ns = cells_[cell].transfers_ns;
    if (Quantile(transfers_ns, 0.75) > kUnsteadyFactor * Quantile(transfers_ns, 0.25)) {
      reasons.push_back(kUnsteady);
    }
    if (SeemsSliced(cell)) reasons.push_back(kSliced);
    return reasons;
  }

  bool SeemsSliced(size_t cell) const {
    if (cells_[cell].median_ns < kFarMore * simulated_ns_[cell]) return false;
    int alike = 0;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const bool other =
          cells_[i].kind != cells_[cell].kind || cells_[i].bytes != cells_[cell].bytes;
      const double difference = std::log(cells_[i].median_ns / cells_[cell].median_ns);
      alike += other && std::abs(difference) < kSameTime ? 1 : 0;
    }
    return alike >= kEnoughAlike;
  }

  void CheckCells() {
    std::vector<Prediction> all;
    std::map<std::string, std::vector<Prediction>> by_reason;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Prediction prediction = {cells_[i].bytes, cells_[i].median_ns, simulated_ns_[i]};
      all.push_back(prediction);
      CheckedCell* cell = report_.add_cells();
      cell->set_kind(std::string(CommKindName(cells_[i].kind)));
      cell->set_bytes(cells_[i].bytes);
      cell->set_group(GroupText(cells_[i]));
      cell->set_repeats(static_cast<int64_t>(cells_[i].transfers_ns.size()));
      cell->set_measured_ns(prediction.measured_ns);
      cell->set_simulated_ns(prediction.predicted_ns);
      cell->set_signed_error(prediction.signed_error());
      std::vector<std::string> reasons = ReasonsOf(i);
      for (const std::string& reason : reasons) cell->add_reasons(reason);
      if (reasons.empty()) reasons.push_back("none of these");
      for (const std::string& reason : reasons) by_reason[reason].push_back(prediction);
    }
    *report_.mutable_summary() = SummariseErrors(all);
    for (const auto& [reason, predictions] : by_reason) {
      CheckedReason* checked = report_.add_reasons();
      checked->set_reason(reason);
      checked->set_cells(static_cast<int64_t>(predictions.size()));
      checked->set_mape(SummariseErrors(predictions).mape());
    }
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
        collective->set_kind(std::string(CommKindName(sample.kind)));
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

  // Snapshots of one collective are what its cell is.
  absl::Status CheckSnapshots(const CalibrationRun& run) {
    std::vector<EdgeInterval> intervals;
    std::vector<CommEdge> edges;
    for (const TransferSample& sample : run.transfers.samples) {
      const int64_t end_ns = sample.start_ns + static_cast<int64_t>(sample.transfer_ns);
      intervals.push_back({sample.start_ns, end_ns});
      edges.push_back(EdgeOf(cells_[PositionOf(run, sample)]));
    }
    ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots,
                     CollectSnapshots(intervals, std::vector<bool>(edges.size(), true),
                                      EdgeDomains::OneForAll(edges.size())));
    CorrectedTiming timing(
        std::make_unique<EmbeddedTiming>(std::make_shared<FabricSet>(FabricSet::ForAllEdges(
                                             FabricForRanks(fabric_, run.transfers.ranks))),
                                         Congestion::kAware),
        corrections_);
    std::map<std::vector<std::string>, std::vector<double>> known_seconds;
    for (const Snapshot& snapshot : snapshots) {
      if (snapshot.members.size() < 2) continue;
      std::vector<CommEdge> batch;
      std::vector<std::string> key;
      for (EdgeIndex member : snapshot.members) {
        batch.push_back(edges[member]);
        key.push_back(CanonicalText(edges[member]));
      }
      std::vector<double>& seconds = known_seconds[key];
      if (seconds.empty()) {
        ASSIGN_OR_RETURN(const BatchEstimate estimate, timing.EstimateBatch(batch));
        seconds = estimate.seconds;
      }
      AddSnapshot(run, snapshot, intervals, edges, seconds);
    }
    return absl::OkStatus();
  }

  void AddSnapshot(const CalibrationRun& run, const Snapshot& snapshot,
                   const std::vector<EdgeInterval>& intervals, const std::vector<CommEdge>& edges,
                   const std::vector<double>& seconds) {
    const double measured_ns = static_cast<double>(snapshot.duration_ns());
    double simulated_ns = 0;
    int64_t bytes = 0;
    for (size_t m = 0; m < snapshot.members.size(); ++m) {
      const EdgeInterval& interval = intervals[snapshot.members[m]];
      const double share = measured_ns / static_cast<double>(interval.duration_ns());
      simulated_ns = std::max(simulated_ns, share * seconds[m] * kNsPerSecond);
      bytes = std::max(bytes, edges[snapshot.members[m]].bytes);
    }
    snapshot_predictions_.push_back({bytes, measured_ns, simulated_ns});
    report_.set_snapshots_total(report_.snapshots_total() + 1);
    if (report_.snapshots_size() >= kMaxCheckedDetails) return;
    CheckedSnapshot* checked = report_.add_snapshots();
    checked->set_run(run.folder);
    checked->set_start_ns(snapshot.start_ns);
    checked->set_members(static_cast<int64_t>(snapshot.members.size()));
    checked->set_measured_ns(measured_ns);
    checked->set_simulated_ns(simulated_ns);
    checked->set_signed_error(snapshot_predictions_.back().signed_error());
  }

  const absl::Span<const CalibrationRun> runs_;
  const Fabric& fabric_;
  const Corrections& corrections_;
  const SimulationCheckOptions& options_;
  std::vector<TransferCell> cells_;
  std::map<CellKey, size_t> positions_;
  // By cell.
  std::vector<double> simulated_ns_;
  std::vector<int64_t> overlapped_;
  std::vector<Prediction> snapshot_predictions_;
  SimulationCheckReport report_;
};

}  // namespace

absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const SimulationCheckOptions& options) {
  return Checker(runs, fabric, corrections, options).Check();
}

std::string FormatSimulationCheck(const SimulationCheckReport& report) {
  using Align = TextTable::Align;
  TextTable cells({{"kind"},
                   {"bytes", Align::kRight},
                   {"group"},
                   {"repeats", Align::kRight},
                   {"measured us", Align::kRight},
                   {"simulated us", Align::kRight},
                   {"error", Align::kRight},
                   {"beside"}});
  for (const CheckedCell& cell : report.cells()) {
    cells.AddRow({cell.kind(), WithThousands(cell.bytes()), cell.group(),
                  WithThousands(cell.repeats()), Micros(cell.measured_ns()),
                  Micros(cell.simulated_ns()), SignedPercent(cell.signed_error()),
                  absl::StrJoin(cell.reasons(), "; ")});
  }
  TextTable steps({{"run"},
                   {"step"},
                   {"measured us", Align::kRight},
                   {"simulated us", Align::kRight},
                   {"error", Align::kRight},
                   {"replayed us", Align::kRight},
                   {"computing beside", Align::kRight}});
  for (const CheckedStep& step : report.steps()) {
    steps.AddRow({step.run(), step.has_step() ? absl::StrCat(step.step()) : "all",
                  Micros(step.measured_ns()), Micros(step.simulated_ns()),
                  SignedPercent(step.signed_error()), Micros(step.replayed_ns()),
                  Percent(step.compute_share())});
  }
  TextTable reasons({{"cells that are"}, {"cells", Align::kRight}, {"mean error", Align::kRight}});
  for (const CheckedReason& reason : report.reasons()) {
    reasons.AddRow({reason.reason(), WithThousands(reason.cells()), Percent(reason.mape())});
  }
  TextTable errors({{"errors"},
                    {"n", Align::kRight},
                    {"mean", Align::kRight},
                    {"p95", Align::kRight},
                    {"signed", Align::kRight}});
  const auto add = [&](const std::string& name, const ErrorSummary& summary) {
    if (summary.n() == 0) return;
    errors.AddRow({name, WithThousands(summary.n()), Percent(summary.mape()),
                   Percent(summary.p95()), SignedPercent(summary.mean_signed_error())});
  };
  add("cells (medians)", report.summary());
  add("collectives", report.collective_summary());
  add("snapshots of several", report.snapshot_summary());
  add("steps", report.step_summary());
  std::string text = absl::StrCat(cells.ToString(), "\n");
  if (report.steps_size() > 0) absl::StrAppend(&text, steps.ToString(), "\n");
  absl::StrAppend(&text, reasons.ToString(), "\n", errors.ToString());
  for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string SimulationCheckCsv(const SimulationCheckReport& report) {
  std::string csv =
      "what,run,name,bytes,group,start_ns,measured_ns,simulated_ns,signed_error,beside\n";
  const auto add = [&](absl::string_view what, absl::string_view run, absl::string_view name,
                       int64_t bytes, absl::string_view group, int64_t start_ns, const auto& row,
                       absl::string_view beside) {
    absl::StrAppendFormat(&csv, "%s,%s,%s,%d,%s,%d,%.3f,%.3f,%.6f,%s\n", what, CsvField(run),
                          CsvField(name), bytes, CsvField(group), start_ns, row.measured_ns(),
                          row.simulated_ns(), row.signed_error(), CsvField(beside));
  };
  for (const CheckedCell& cell : report.cells()) {
    add("cell", "", cell.kind(), cell.bytes(), cell.group(), 0, cell,
        absl::StrJoin(cell.reasons(), "; "));
  }
  for (const CheckedCollective& collective : report.collectives()) {
    add("collective", collective.run(), collective.kind(), collective.bytes(), collective.group(),
        collective.start_ns(), collective, collective.overlapped() ? kOverlapped : "");
  }
  for (const CheckedSnapshot& snapshot : report.snapshots()) {
    add("snapshot", snapshot.run(), absl::StrCat(snapshot.members(), " collectives"), 0, "",
        snapshot.start_ns(), snapshot, "");
  }
  for (const CheckedStep& step : report.steps()) {
    add("step", step.run(), step.has_step() ? absl::StrCat(step.step()) : "all", 0, "", 0, step,
        "");
  }
  return csv;
}

}  // namespace meridian
