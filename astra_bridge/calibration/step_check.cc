#include "astra_bridge/calibration/step_check.h"

#include <cmath>
#include <utility>
#include <vector>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Returns how long each edge lasts alone, in nanoseconds, by the calibration; 0 for those that move
// nothing.
absl::StatusOr<std::vector<double>> CalibratedNs(absl::Span<const CommEdge> edges, int32_t ranks,
                                                 const StepModel& model) {
  const NetworkTiming calibrated =
      CorrectedTiming(EngineForRanks(model.fabric, ranks), model.corrections);
  ASSIGN_OR_RETURN(std::vector<double> lasts_ns, EstimateEdges(calibrated, edges, [](uint64_t) {}));
  for (size_t i = 0; i < edges.size(); ++i) {
    lasts_ns[i] = lasts_ns[i] * kNsPerSecond * model.intervals.MeanOverMedian(edges[i].bytes);
  }
  return lasts_ns;
}

// Returns how long the step takes when all transfers are as far to one end of their intervals as
// `side` says: -1 for the shortest, 1 for the longest, 0 for what is predicted.
absl::StatusOr<double> MakespanNs(const ExecutionGraph& graph, const CommunicationMatch& match,
                                  const GraphReplay& as_measured, const WorkloadEdges& edges,
                                  const SharedTransfers& transfers, std::vector<double> lasts_ns,
                                  const StepModel& model, double side) {
  std::vector<EdgeScale> scales(lasts_ns.size());
  if (!model.fabric.network.has_links()) {
    for (size_t i = 0; i < lasts_ns.size(); ++i) {
      lasts_ns[i] *= std::exp(side * model.intervals.LogFactor(TraitsOf(edges.edges[i])));
    }
    ASSIGN_OR_RETURN(scales, transfers.FitScales(transfers.Apart(lasts_ns), lasts_ns));
  }
  ASSIGN_OR_RETURN(const EdgeTimes times,
                   ReplayOnNetwork(graph, match, edges, transfers, scales,
                                   ReplayResources::kPerResource, as_measured));
  return static_cast<double>(times.replay.makespan_ns);
}

}  // namespace

absl::Status CheckStep(const ProfiledRun& profiles, const std::string& folder,
                       std::optional<int64_t> step, const StepModel& model, bool allow_violations,
                       SimulationCheckReport* report) {
  XSpaceExportOptions options;
  options.allow_violations = allow_violations;
  if (step.has_value()) options.steps = NumberRange{*step, *step};
  ASSIGN_OR_RETURN(const XSpaceGraph built, BuildXSpaceGraph(profiles, options));
  const ExecutionGraph& graph = built.graph;
  const CommunicationMatch match(graph);
  const int32_t ranks = static_cast<int32_t>(graph.Ranks().size());
  ASSIGN_OR_RETURN(Fabric links, WithSharedPorts(FabricForRanks(model.fabric, ranks)));
  const FabricSet fabrics = FabricSet::ForAllEdges(std::move(links));
  ASSIGN_OR_RETURN(const WorkloadEdges edges, FindWorkloadEdges(graph, match));
  const SharedTransfers transfers(
      edges.edges, fabrics, Congestion::kFair,
      model.fabric.network.has_links() ? model.corrections.overhead_ns : 0);
  ASSIGN_OR_RETURN(const std::vector<double> alone_ns, CalibratedNs(edges.edges, ranks, model));
  ReplayOptions as_measured;
  as_measured.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match, as_measured));
  const auto makespan_ns = [&](double side) {
    return MakespanNs(graph, match, replay, edges, transfers, alone_ns, model, side);
  };
  CheckedStep checked;
  checked.set_run(folder);
  if (step.has_value()) checked.set_step(*step);
  checked.set_measured_ns(static_cast<double>(MeasuredSpanNs(graph).value_or(0)));
  ASSIGN_OR_RETURN(const double simulated_ns, makespan_ns(0));
  checked.set_simulated_ns(simulated_ns);
  if (!model.intervals.empty()) {
    ASSIGN_OR_RETURN(const double low_ns, makespan_ns(-1));
    ASSIGN_OR_RETURN(const double high_ns, makespan_ns(1));
    checked.set_simulated_low_ns(low_ns);
    checked.set_simulated_high_ns(high_ns);
  }
  checked.set_replayed_ns(static_cast<double>(replay.makespan_ns));
  if (checked.measured_ns() > 0) {
    checked.set_signed_error(checked.simulated_ns() / checked.measured_ns() - 1);
  }
  *report->add_steps() = checked;
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
