#include "astra_bridge/calibration/step_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// Returns how long the step takes when all transfers are as far to one end of their intervals as
// `side` says: -1 for the shortest, 1 for the longest, 0 for what is predicted.
absl::StatusOr<double> MakespanNs(const ExecutionGraph& graph, const CommunicationMatch& match,
                                  const IterationPrediction& prediction, const StepModel& model,
                                  double side) {
  std::vector<int64_t> edge_ns;
  for (size_t edge = 0; edge < prediction.seconds.size(); ++edge) {
    const CommEdge& moved = prediction.edges.edges[edge];
    const double factor = model.intervals.MeanOverMedian(moved.bytes) *
                          std::exp(side * model.intervals.LogFactor(TraitsOf({&moved, 1})[0]));
    edge_ns.push_back(
        std::llround(std::min(prediction.seconds[edge] * kNsPerSecond * factor, kMaxCorrectedNs)));
  }
  ASSIGN_OR_RETURN(const EdgeTimes times, ReplayEdges(graph, match, prediction.edges, edge_ns,
                                                      ReplayResources::kPerResource));
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
  TimingSetup setup;
  setup.fabrics =
      std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(model.fabric, ranks)));
  setup.timing =
      std::make_unique<CorrectedTiming>(EngineForRanks(model.fabric, ranks), model.corrections);
  IterationOptions iteration;
  iteration.mode = TimingMode::kSnapshot;
  ASSIGN_OR_RETURN(const std::unique_ptr<IterationPrediction> prediction,
                   PredictIteration(setup, graph, match, iteration));
  ReplayOptions as_measured;
  as_measured.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match, as_measured));
  CheckedStep checked;
  checked.set_run(folder);
  if (step.has_value()) checked.set_step(*step);
  checked.set_measured_ns(static_cast<double>(MeasuredSpanNs(graph).value_or(0)));
  ASSIGN_OR_RETURN(const double simulated_ns, MakespanNs(graph, match, *prediction, model, 0));
  checked.set_simulated_ns(simulated_ns);
  if (!model.intervals.empty()) {
    ASSIGN_OR_RETURN(const double low_ns, MakespanNs(graph, match, *prediction, model, -1));
    ASSIGN_OR_RETURN(const double high_ns, MakespanNs(graph, match, *prediction, model, 1));
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
