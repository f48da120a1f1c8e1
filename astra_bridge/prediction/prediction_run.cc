#include "astra_bridge/prediction/prediction_run.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/prediction/iteration_times.h"
#include "astra_bridge/prediction/prediction_report.h"
#include "astra_bridge/prediction/traffic_manifest.pb.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

using EdgeLogFactor = std::function<double(const CommEdge&)>;

// Returns how far the time of an edge alone may be off; null: not known.
EdgeLogFactor LogFactorOf(const PredictionIntervals& intervals) {
  if (intervals.empty()) return nullptr;
  return [&intervals](const CommEdge& edge) {
    return intervals.LogFactor(TraitsOf({&edge, 1})[0]);
  };
}

// Sets how far each edge of the report may be off; `edges` are as many, on devices, in the same
// order.
void AddIntervals(const EdgeLogFactor& log_factor, const std::vector<CommEdge>& edges,
                  PredictionReport* report) {
  if (!log_factor) return;
  for (size_t i = 0; i < edges.size(); ++i) {
    EdgePrediction& edge = *report->mutable_edges(static_cast<int>(i));
    const double factor = std::exp(log_factor(edges[i]));
    edge.set_low_seconds(edge.seconds() / factor);
    edge.set_high_seconds(edge.seconds() * factor);
  }
}

}  // namespace

absl::StatusOr<std::vector<PredictionNetwork>> ReadNetworks(FileSystem& file_system,
                                                            const NetworkFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<CalibrationFiles> named,
                   NamedCalibrations(file_system, flags.calibrations, flags.files));
  TimingConfig config;
  config.model = flags.model;
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(config, ReadTimingConfig(file_system, flags.config));
  }
  std::vector<PredictionNetwork> networks;
  for (const CalibrationFiles& files : named) {
    PredictionNetwork& network = networks.emplace_back();
    network.name = files.name;
    network.config = config;
    TimingFlags timing = flags.timing;
    timing.fabric = {files.network, files.system};
    timing.corrections = files.corrections;
    RETURN_IF_ERROR(ApplyTimingFlags(timing, &network.config));
    ASSIGN_OR_RETURN(network.intervals, ReadIntervals(file_system, files));
    network.files = FilesOf(network.config);
    network.files.insert(network.files.end(), {flags.config, files.report});
  }
  return networks;
}

absl::StatusOr<PredictionReport> PredictEdgeList(FileSystem& file_system, const std::string& path,
                                                 const InputFileOptions& input,
                                                 const PredictionNetwork& network,
                                                 const TimingEnvironment& environment,
                                                 absl::FunctionRef<void(uint64_t)> progress) {
  ASSIGN_OR_RETURN(const CommEdgeList list, ReadCommEdges(file_system, path, input));
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(file_system, network.config, environment));
  ASSIGN_OR_RETURN(PredictionReport report,
                   PredictEdges(setup, list, network.config.mode, progress));
  std::vector<CommEdge> placed = list.edges;
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &placed));
  AddIntervals(LogFactorOf(network.intervals), placed, &report);
  return report;
}

absl::StatusOr<PredictionReport> WorkloadPredictor::Predict(
    const PredictionNetwork& network, std::function<void(uint64_t)> bytes_read,
    std::function<void(uint64_t)> progress) {
  ASSIGN_OR_RETURN(const EtFiles traces, FindEtFiles(file_system_, options_.prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(traces, options_.prefix));
  TimingEnvironment environment = options_.environment;
  environment.ranks = static_cast<int64_t>(traces.files.size());
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(file_system_, network.config, environment));
  RETURN_IF_ERROR(ReadWorkload(traces, std::exchange(bytes_read, nullptr)));
  const ExecutionGraph& graph = workload_->graph;
  const CommunicationMatch& match = workload_->match;
  IterationOptions iteration = options_.iteration;
  iteration.progress = std::move(progress);
  const absl::StatusOr<std::unique_ptr<IterationPrediction>> prediction =
      PredictIteration(setup, graph, match, iteration);
  if (!prediction.ok()) return Annotate(prediction.status(), options_.prefix);
  if (!options_.manifest.empty()) RETURN_IF_ERROR(WriteManifest(**prediction, setup));
  PredictionReport report = MakeIterationReport(**prediction, iteration, setup, graph, match);
  report.set_network(network.name);
  const EdgeLogFactor log_factor = LogFactorOf(network.intervals);
  AddIntervals(log_factor, (*prediction)->edges.edges, &report);
  ASSIGN_OR_RETURN(*report.mutable_workload()->mutable_times(),
                   TimeIteration(**prediction, graph, match, iteration.resources, log_factor));
  return report;
}

absl::Status WorkloadPredictor::ReadWorkload(const EtFiles& traces,
                                             std::function<void(uint64_t)> bytes_read) {
  if (workload_ != nullptr) return absl::OkStatus();
  EtGraphReaderOptions reading;
  reading.input = options_.input;
  reading.progress = std::move(bytes_read);
  if (!options_.comm_groups.empty()) {
    ASSIGN_OR_RETURN(reading.groups, ReadCommGroups(file_system_, options_.comm_groups));
  }
  ASSIGN_OR_RETURN(ExecutionGraph graph, ReadEtGraph(file_system_, traces, reading));
  workload_ = std::make_unique<const Workload>(std::move(graph));
  return absl::OkStatus();
}

absl::Status WorkloadPredictor::WriteManifest(const IterationPrediction& prediction,
                                              const TimingSetup& setup) {
  const TrafficManifest manifest =
      MakeTrafficManifest(prediction, options_.iteration, setup.timing->engine(), workload_->graph);
  const bool binary = absl::EndsWith(absl::StripSuffix(options_.manifest, ".gz"), ".pb");
  return outputs_->Write("manifest", options_.manifest, [&](ByteSink& sink) {
    return binary ? sink.Append(manifest.SerializeAsString()) : WriteReportJson(manifest, &sink);
  });
}

}  // namespace meridian
