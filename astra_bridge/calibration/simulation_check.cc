#include "astra_bridge/calibration/simulation_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/prediction/edge_domains.h"
#include "astra_bridge/prediction/traffic_interval_timer.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

constexpr char kNoReason[] = "no reason known";
// Traffic intervals name so many of their collectives.
constexpr size_t kMaxNamed = 4;
// What runs beside a collective is looked for among at most so many others.
constexpr size_t kMaxBeside = 64;

class Checker {
 public:
  Checker(absl::Span<const CalibrationRun> runs, const Fabric& fabric,
          const Corrections& corrections, const SimulationCheckOptions& options)
      : runs_(runs), fabric_(fabric), corrections_(corrections), options_(options) {}

  absl::StatusOr<SimulationCheckReport> Check() {
    RETURN_IF_ERROR(SimulateCells());
    FindCircumstances();
    AddNotes();
    CheckCells();
    CheckCollectives();
    for (const CalibrationRun& run : runs_) RETURN_IF_ERROR(CheckTraffic(run));
    *report_.mutable_snapshot_summary() = SummariseErrors(traffic_predictions_);
    return std::move(report_);
  }

 private:
  absl::Status SimulateCells() {
    CellOptions all;
    all.dropped_repeats = 0;
    all.keep_overlapped = true;
    cells_ = MakeTransferCells(runs_, all);
    if (cells_.empty()) {
      return absl::InvalidArgumentError(
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
        return absl::InvalidArgumentError(absl::StrCat(
            network.source, " has ", network.npus(), " NPUs, but rank ", last, " of ",
            Printable(run.folder), " takes part; give --network a network with at least ",
            std::max(run.transfers.ranks, last + 1), " NPUs"));
      }
    }
    return absl::OkStatus();
  }

  void FindCircumstances() {
    circumstances_.resize(cells_.size());
    for (const CalibrationRun& run : runs_) {
      for (const TransferSample& sample : run.transfers.samples) {
        CellCircumstances& circumstances = circumstances_[PositionOf(run, sample)];
        circumstances.overlapped += sample.overlapped ? 1 : 0;
        circumstances.device_kinds.insert(run.device_kinds.begin(), run.device_kinds.end());
      }
      FindBeside(run);
    }
    for (size_t i = 0; i < cells_.size(); ++i) {
      circumstances_[i].beside /= static_cast<double>(cells_[i].transfers_ns.size());
      if (!options_.beside.has_value()) continue;
      const std::optional<ComputeBeside::Shares> shares = options_.beside->SharesOf(cells_[i]);
      if (!shares.has_value()) continue;
      circumstances_[i].compute_share = shares->own;
      circumstances_[i].others_compute_share = shares->others;
    }
  }

  // Sums up how many transfers of other groups were under way beside each of the run; of very many
  // at once, some.
  void FindBeside(const CalibrationRun& run) {
    const std::vector<TransferSample>& samples = run.transfers.samples;
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return samples[a].start_ns < samples[b].start_ns; });
    std::vector<double> beside(samples.size());
    std::vector<size_t> under_way;
    for (const size_t next : order) {
      // How long a transfer that began earlier goes on from here.
      const auto rest_ns = [&](size_t i) {
        return samples[i].transfer_ns -
               static_cast<double>(samples[next].start_ns - samples[i].start_ns);
      };
      under_way.erase(std::remove_if(under_way.begin(), under_way.end(),
                                     [&](size_t i) { return rest_ns(i) <= 0; }),
                      under_way.end());
      for (const size_t other : under_way) {
        // Ranks that are in both are said to have met other collectives.
        if (samples[other].overlapped && samples[next].overlapped) continue;
        const double both_ns = std::min(samples[next].transfer_ns, rest_ns(other));
        beside[next] += both_ns / samples[next].transfer_ns;
        beside[other] += both_ns / samples[other].transfer_ns;
      }
      if (under_way.size() < kMaxBeside) under_way.push_back(next);
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      circumstances_[PositionOf(run, samples[i])].beside += beside[i];
    }
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
    std::map<std::string, std::vector<Prediction>> by_reason;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Prediction prediction = {cells_[i].bytes, cells_[i].median_ns, simulated_ns_[i]};
      all.push_back(prediction);
      CheckedCell* cell = report_.add_cells();
      DescribeCell(cells_[i], cell);
      cell->set_simulated_ns(prediction.predicted_ns);
      cell->set_signed_error(prediction.signed_error());
      const CellCircumstances& circumstances = circumstances_[i];
      if (circumstances.compute_share.has_value()) {
        cell->set_compute_share(*circumstances.compute_share);
        cell->set_others_compute_share(*circumstances.others_compute_share);
      }
      cell->set_beside(circumstances.beside);
      if (cells_[i].pause_ns.has_value()) cell->set_pause_ns(*cells_[i].pause_ns);
      SetInterval(cells_[i], cell);
      std::vector<std::string> reasons = FindReasons(cells_[i], circumstances, options_.range);
      for (const std::string& reason : reasons) cell->add_reasons(reason);
      if (reasons.empty()) reasons.push_back(kNoReason);
      for (const std::string& reason : reasons) {
        by_reason[std::string(ReasonTopic(reason))].push_back(prediction);
      }
    }
    *report_.mutable_summary() = SummariseErrors(all);
    for (const CheckedCell& cell : report_.cells()) {
      if (!cell.has_simulated_low_ns()) continue;
      CountInside(cell.measured_ns(), cell.simulated_low_ns(), cell.simulated_high_ns(),
                  report_.mutable_cells_inside());
    }
    for (const auto& [reason, predictions] : by_reason) {
      CheckedReason* checked = report_.add_reasons();
      checked->set_reason(reason);
      checked->set_cells(static_cast<int64_t>(predictions.size()));
      checked->set_mape(SummariseErrors(predictions).mape());
    }
  }

  void SetInterval(const TransferCell& cell, CheckedCell* checked) const {
    if (options_.intervals.empty()) return;
    const double factor = std::exp(options_.intervals.LogFactor(TraitsOf(cell)));
    checked->set_simulated_low_ns(checked->simulated_ns() / factor);
    checked->set_simulated_high_ns(checked->simulated_ns() * factor);
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

  // Traffic intervals of one collective are what its cell is.
  absl::Status CheckTraffic(const CalibrationRun& run) {
    std::vector<EdgeInterval> intervals;
    std::vector<CommEdge> edges;
    for (const TransferSample& sample : run.transfers.samples) {
      const int64_t end_ns = sample.start_ns + static_cast<int64_t>(sample.transfer_ns);
      intervals.push_back({sample.start_ns, end_ns});
      edges.push_back(EdgeOf(cells_[PositionOf(run, sample)]));
    }
    ASSIGN_OR_RETURN(std::vector<TrafficInterval> traffic,
                     CollectTrafficIntervals(intervals, std::vector<bool>(edges.size(), true),
                                             EdgeDomains::OneForAll(edges.size())));
    traffic.erase(std::remove_if(traffic.begin(), traffic.end(),
                                 [](const auto& interval) { return interval.members.size() < 2; }),
                  traffic.end());
    if (traffic.empty()) return absl::OkStatus();
    CorrectedTiming timing(EngineForRanks(fabric_, run.transfers.ranks), corrections_,
                           run.transfers.ranks);
    TrafficIntervalTimer timer(timing, edges, /*threads=*/1);
    const auto no_progress = [](uint64_t) {};
    RETURN_IF_ERROR(timer.TimeEdges(no_progress));
    ASSIGN_OR_RETURN(const std::vector<BatchIndex> batches,
                     timer.TimeIntervals(traffic, no_progress));
    for (size_t i = 0; i < traffic.size(); ++i) {
      traffic[i].members = timer.BatchMembers(traffic[i]);
      AddInterval(run, traffic[i], intervals, timer.batch(batches[i]).seconds);
    }
    return absl::OkStatus();
  }

  std::string CollectivesText(const CalibrationRun& run, const TrafficInterval& interval) const {
    std::vector<std::string> named;
    for (CommEdgeIndex member : interval.members) {
      if (named.size() == kMaxNamed) break;
      const TransferCell& cell = cells_[PositionOf(run, run.transfers.samples[member])];
      named.push_back(
          absl::StrCat(CollectiveKindName(cell.kind), " ", cell.bytes, " ", GroupText(cell)));
    }
    const std::string text = absl::StrJoin(named, " + ");
    if (interval.members.size() <= kMaxNamed) return text;
    return absl::StrCat(text, " and ", interval.members.size() - kMaxNamed, " more");
  }

  // Seconds are in the order of the members.
  void AddInterval(const CalibrationRun& run, const TrafficInterval& interval,
                   const std::vector<EdgeInterval>& edges, const std::vector<double>& seconds) {
    const double measured_ns = static_cast<double>(interval.duration_ns());
    double simulated_ns = 0;
    int64_t bytes = 0;
    for (size_t m = 0; m < interval.members.size(); ++m) {
      const EdgeInterval& edge = edges[interval.members[m]];
      const double share = measured_ns / static_cast<double>(edge.duration_ns());
      simulated_ns = std::max(simulated_ns, share * seconds[m] * kNsPerSecond);
      bytes = std::max(bytes, run.transfers.samples[interval.members[m]].bytes);
    }
    traffic_predictions_.push_back({bytes, measured_ns, simulated_ns});
    report_.set_snapshots_total(report_.snapshots_total() + 1);
    if (report_.snapshots_size() >= kMaxCheckedDetails) return;
    CheckedTraffic* checked = report_.add_snapshots();
    checked->set_run(run.folder);
    checked->set_start_ns(interval.start_ns);
    checked->set_members(static_cast<int64_t>(interval.members.size()));
    checked->set_collectives(CollectivesText(run, interval));
    checked->set_measured_ns(measured_ns);
    checked->set_simulated_ns(simulated_ns);
    checked->set_signed_error(traffic_predictions_.back().signed_error());
  }

  const absl::Span<const CalibrationRun> runs_;
  const Fabric& fabric_;
  const Corrections& corrections_;
  const SimulationCheckOptions& options_;
  std::vector<TransferCell> cells_;
  // Positions in cells_.
  std::map<CellKey, size_t> positions_;
  // Simulated times in nanoseconds, and how cells came about, indexed by cell.
  std::vector<double> simulated_ns_;
  std::vector<CellCircumstances> circumstances_;
  std::vector<Prediction> traffic_predictions_;
  SimulationCheckReport report_;
};

}  // namespace

absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const SimulationCheckOptions& options) {
  return Checker(runs, fabric, corrections, options).Check();
}

}  // namespace meridian
