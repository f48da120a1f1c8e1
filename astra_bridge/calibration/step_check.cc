#include "astra_bridge/calibration/step_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// How often a step is scheduled with transfers that scatter.
constexpr int kStepDraws = 40;
// So many ranks outside of a group are enough to see whether they computed.
constexpr size_t kMaxOthers = 16;

struct TimeInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

TimeInterval IntervalOf(const ExecutionGraph& graph, NodeIndex node) {
  return {graph.start_ns(node), graph.start_ns(node) + graph.duration_ns(node)};
}

// Returns when each rank computed, in order and without overlaps.
std::map<int64_t, std::vector<TimeInterval>> FindComputing(const ExecutionGraph& graph,
                                                           const std::vector<bool>& computes) {
  std::map<int64_t, std::vector<TimeInterval>> computing;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (!computes[node] || graph.start_ns(node) == kNoTimeNs) continue;
    computing[graph.rank(node)].push_back(IntervalOf(graph, node));
  }
  for (auto& [rank, intervals] : computing) {
    std::sort(intervals.begin(), intervals.end(),
              [](const TimeInterval& a, const TimeInterval& b) { return a.start_ns < b.start_ns; });
    int64_t last_end_ns = std::numeric_limits<int64_t>::min();
    for (TimeInterval& interval : intervals) {
      interval.start_ns = std::max(interval.start_ns, last_end_ns);
      interval.end_ns = std::max(interval.start_ns, interval.end_ns);
      last_end_ns = interval.end_ns;
    }
  }
  return computing;
}

double OverlapNs(const TimeInterval& one, const std::vector<TimeInterval>& others) {
  double overlap_ns = 0;
  auto other = std::partition_point(
      others.begin(), others.end(),
      [&](const TimeInterval& interval) { return interval.end_ns <= one.start_ns; });
  for (; other != others.end() && other->start_ns < one.end_ns; ++other) {
    overlap_ns += static_cast<double>(std::min(one.end_ns, other->end_ns) -
                                      std::max(one.start_ns, other->start_ns));
  }
  return overlap_ns;
}

// Returns when ranks computed that are not among the participants, of some of these.
std::vector<const std::vector<TimeInterval>*> OthersOf(
    std::vector<int32_t> participants,
    const std::map<int64_t, std::vector<TimeInterval>>& computing) {
  std::sort(participants.begin(), participants.end());
  std::vector<const std::vector<TimeInterval>*> others;
  for (const auto& [rank, intervals] : computing) {
    if (others.size() == kMaxOthers) break;
    if (!std::binary_search(participants.begin(), participants.end(), rank)) {
      others.push_back(&intervals);
    }
  }
  return others;
}

// Returns what a share of the draws from a normal distribution is below.
double NormalQuantile(double share) {
  double low = -10, high = 10;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return low;
}

const TransferSpread& SpreadOf(int64_t bytes,
                               const google::protobuf::RepeatedPtrField<TransferSpread>& spreads) {
  const TransferSpread* found = &spreads[0];
  for (const TransferSpread& spread : spreads) {
    if (spread.from_bytes() <= bytes) found = &spread;
  }
  return *found;
}

// Returns how long the workload takes, for each of some draws; empty without spreads. Transfers
// scatter as the spreads say, each by itself; what the calibration is off by, unless that is left
// out, all have in common, evenly spread over its distribution, so that few draws tell it.
absl::StatusOr<std::vector<double>> DrawMakespans(const ExecutionGraph& graph,
                                                  const CommunicationMatch& match,
                                                  const IterationPrediction& prediction,
                                                  const StepModel& model, int32_t ranks,
                                                  bool only_scatter) {
  std::vector<double> makespans_ns;
  if (model.spreads.empty()) return makespans_ns;
  std::vector<double> deviations;
  for (const CommEdge& edge : prediction.edges.edges) {
    deviations.push_back(model.intervals.LogDeviation(TraitsOf({&edge, 1}, ranks)[0]));
  }
  std::mt19937_64 random(1);
  for (int draw = 0; draw < kStepDraws; ++draw) {
    const double off_by = only_scatter ? 0 : NormalQuantile((draw + 0.5) / kStepDraws);
    std::vector<int64_t> edge_ns;
    for (size_t edge = 0; edge < prediction.seconds.size(); ++edge) {
      const CommEdge& moved = prediction.edges.edges[edge];
      const TransferSpread& spread = SpreadOf(moved.bytes, model.spreads);
      const double scatter =
          spread.ratios(static_cast<int>(random() % static_cast<uint64_t>(spread.ratios_size())));
      edge_ns.push_back(std::llround(std::min(
          prediction.seconds[edge] * kNsPerSecond * scatter * std::exp(off_by * deviations[edge]),
          kMaxCorrectedNs)));
    }
    ASSIGN_OR_RETURN(const EdgeTimes times, ReplayEdges(graph, match, prediction.edges, edge_ns,
                                                        ReplayResources::kPerResource));
    makespans_ns.push_back(static_cast<double>(times.replay.makespan_ns));
  }
  return makespans_ns;
}

}  // namespace

ComputeBeside::Key ComputeBeside::KeyFor(CollectiveKind kind, int64_t bytes, int32_t ranks,
                                         std::vector<int32_t> members) {
  if (kind == CollectiveKind::kPointToPoint) members.clear();
  std::sort(members.begin(), members.end());
  return {kind, bytes, ranks, std::move(members)};
}

double ComputeBeside::Add(const ExecutionGraph& graph, const std::vector<bool>& computes,
                          const CommunicationMatch& match, const WorkloadEdges& edges) {
  const auto computing = FindComputing(graph, computes);
  const int32_t ranks = static_cast<int32_t>(graph.Ranks().size());
  Times of_graph;
  for (size_t instance = 0; instance < match.instance_count(); ++instance) {
    if (edges.edge_of_instance[instance] == kNoCommEdge) continue;
    const CommEdge& edge = edges.edges[edges.edge_of_instance[instance]];
    Times& times = times_[KeyFor(edge.kind, edge.bytes, ranks, edge.participants)];
    const std::vector<const std::vector<TimeInterval>*> others =
        OthersOf(edge.participants, computing);
    for (NodeIndex node : match.members(static_cast<CommunicationMatch::Instance>(instance))) {
      if (graph.start_ns(node) == kNoTimeNs) continue;
      times.all_ns += static_cast<double>(graph.duration_ns(node));
      of_graph.all_ns += static_cast<double>(graph.duration_ns(node));
      for (const std::vector<TimeInterval>* other : others) {
        times.others_ns +=
            OverlapNs(IntervalOf(graph, node), *other) / static_cast<double>(others.size());
      }
      const auto of_rank = computing.find(graph.rank(node));
      if (of_rank == computing.end()) continue;
      const double beside_ns = OverlapNs(IntervalOf(graph, node), of_rank->second);
      times.beside_ns += beside_ns;
      of_graph.beside_ns += beside_ns;
    }
  }
  return of_graph.all_ns > 0 ? of_graph.beside_ns / of_graph.all_ns : 0;
}

std::optional<ComputeBeside::Shares> ComputeBeside::SharesOf(const TransferCell& cell) const {
  const auto found = times_.find(KeyFor(cell.kind, cell.bytes, cell.ranks, cell.participants));
  if (found == times_.end() || found->second.all_ns <= 0) return std::nullopt;
  const Times& times = found->second;
  return Shares{times.beside_ns / times.all_ns, times.others_ns / times.all_ns};
}

absl::Status CheckStep(const ProfiledRun& profiles, const std::string& folder,
                       std::optional<int64_t> step, const StepModel& model, bool allow_violations,
                       SimulationCheckReport* report, ComputeBeside* beside) {
  XSpaceExportOptions options;
  options.allow_violations = allow_violations;
  if (step.has_value()) options.steps = NumberRange{*step, *step};
  ASSIGN_OR_RETURN(const XSpaceGraph built, BuildXSpaceGraph(profiles, options));
  const ExecutionGraph& graph = built.graph;
  const CommunicationMatch match(graph);
  const int32_t ranks = static_cast<int32_t>(graph.Ranks().size());
  TimingSetup setup;
  setup.fabrics =
      std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(model.fabric, ranks)));
  setup.timing = std::make_unique<CorrectedTiming>(EngineForRanks(model.fabric, ranks),
                                                   model.corrections, ranks);
  IterationOptions iteration;
  iteration.mode = TimingMode::kSnapshot;
  ASSIGN_OR_RETURN(const std::unique_ptr<IterationPrediction> prediction,
                   PredictIteration(setup, graph, match, iteration));
  ASSIGN_OR_RETURN(const std::vector<double> scattered_ns,
                   DrawMakespans(graph, match, *prediction, model, ranks, /*only_scatter=*/true));
  ASSIGN_OR_RETURN(const std::vector<double> drawn_ns,
                   DrawMakespans(graph, match, *prediction, model, ranks, /*only_scatter=*/false));
  ReplayOptions as_measured;
  as_measured.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match, as_measured));
  CheckedStep& checked = *report->add_steps();
  checked.set_run(folder);
  if (step.has_value()) checked.set_step(*step);
  checked.set_measured_ns(static_cast<double>(MeasuredSpanNs(graph).value_or(0)));
  checked.set_simulated_ns(static_cast<double>(prediction->times.replay.makespan_ns));
  if (!drawn_ns.empty()) {
    checked.set_simulated_ns(Mean(scattered_ns));
    checked.set_simulated_low_ns(Quantile(drawn_ns, 0.05));
    checked.set_simulated_high_ns(Quantile(drawn_ns, 0.95));
  }
  checked.set_replayed_ns(static_cast<double>(replay.makespan_ns));
  checked.set_compute_share(beside->Add(graph, built.computes, match, prediction->edges));
  if (checked.measured_ns() > 0) {
    checked.set_signed_error(checked.simulated_ns() / checked.measured_ns() - 1);
  }
  return absl::OkStatus();
}

void SummariseSteps(SimulationCheckReport* report) {
  std::vector<Prediction> predictions;
  for (const CheckedStep& step : report->steps()) {
    if (step.measured_ns() <= 0) continue;
    predictions.push_back({0, step.measured_ns(), step.simulated_ns()});
    if (!step.has_simulated_low_ns()) continue;
    CountInside(step.measured_ns(), step.simulated_low_ns(), step.simulated_high_ns(),
                report->mutable_steps_inside());
  }
  *report->mutable_step_summary() = SummariseErrors(predictions);
  report->mutable_step_summary()->clear_mape_small();
}

}  // namespace meridian
