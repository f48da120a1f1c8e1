#include "astra_bridge/calibration/step_check.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/error_summary.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "astra_bridge/timing/fabric_set.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/xspace/chakra_export_report.pb.h"
#include "chakra_export/xspace/xspace_exporter.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

struct StepGraph {
  ExecutionGraph graph;
  // By node.
  std::vector<bool> computes;
};

absl::StatusOr<StepGraph> GraphOf(FileSystem& file_system, const CalibrationRun& run,
                                  std::optional<int64_t> step, const StepCheckOptions& options) {
  ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Create(options.work_folder));
  const std::string prefix = absl::StrCat(folder.path(), "/step");
  XSpaceExportOptions export_options;
  export_options.reader = options.reader;
  export_options.allow_violations = options.allow_violations;
  if (step.has_value()) export_options.steps = StepRange{*step, *step};
  const auto exported = ExportXSpaces(file_system, run.traces, prefix, export_options);
  RETURN_IF_ERROR(exported.status());
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  EtGraphReaderOptions read;
  const std::string groups = absl::StrCat(prefix, ".comm_groups.json");
  if (file_system.Kind(groups).ok()) {
    ASSIGN_OR_RETURN(read.groups, ReadCommGroups(file_system, groups));
  }
  StepGraph result;
  read.visit = [&](NodeIndex, const ChakraProtoMsg::Node& node) -> absl::Status {
    ASSIGN_OR_RETURN(const bool computes, IsComputation(node));
    result.computes.push_back(computes);
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(result.graph, ReadEtGraph(file_system, files, read));
  return result;
}

// From the first start to the last end.
double SpanNs(const ExecutionGraph& graph) {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.start_ns(node) == kNoTimeNs) continue;
    first_ns = std::min(first_ns, graph.start_ns(node));
    last_ns = std::max(last_ns, graph.start_ns(node) + graph.duration_ns(node));
  }
  return last_ns > first_ns ? static_cast<double>(last_ns - first_ns) : 0;
}

}  // namespace

absl::StatusOr<StepCheck> CheckStep(FileSystem& file_system, const CalibrationRun& run,
                                    std::optional<int64_t> step, const Fabric& fabric,
                                    const Corrections& corrections,
                                    const StepCheckOptions& options) {
  ASSIGN_OR_RETURN(const StepGraph exported, GraphOf(file_system, run, step, options));
  const ExecutionGraph& graph = exported.graph;
  const CommunicationMatch match(graph);
  const int32_t ranks = static_cast<int32_t>(graph.Ranks().size());
  TimingSetup setup;
  setup.fabrics =
      std::make_shared<FabricSet>(FabricSet::ForAllEdges(FabricForRanks(fabric, ranks)));
  setup.timing = std::make_unique<CorrectedTiming>(
      std::make_unique<EmbeddedTiming>(setup.fabrics, Congestion::kAware), corrections);
  IterationOptions iteration;
  iteration.mode = TimingMode::kSnapshot;
  ASSIGN_OR_RETURN(const std::unique_ptr<IterationPrediction> prediction,
                   PredictIteration(setup, graph, match, iteration));
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match));
  StepCheck result;
  result.beside.Add(graph, exported.computes, match, prediction->edges);
  CheckedStep& checked = result.step;
  checked.set_run(run.folder);
  if (step.has_value()) checked.set_step(*step);
  checked.set_measured_ns(SpanNs(graph));
  checked.set_simulated_ns(static_cast<double>(prediction->schedule.replay.makespan_ns));
  checked.set_replayed_ns(static_cast<double>(replay.makespan_ns));
  checked.set_compute_share(result.beside.ShareOfAll());
  if (checked.measured_ns() > 0) {
    checked.set_signed_error(checked.simulated_ns() / checked.measured_ns() - 1);
  }
  return result;
}

void AddSteps(const std::vector<CheckedStep>& steps, SimulationCheckReport* report) {
  std::vector<Prediction> predictions;
  for (const CheckedStep& step : steps) {
    *report->add_steps() = step;
    if (step.measured_ns() > 0) {
      predictions.push_back({0, step.measured_ns(), step.simulated_ns()});
    }
  }
  *report->mutable_step_summary() = SummariseErrors(predictions);
  report->mutable_step_summary()->clear_mape_small();
}

}  // namespace meridian
