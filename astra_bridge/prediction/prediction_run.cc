#include "astra_bridge/prediction/prediction_run.h"

#include <cmath>
#include <utility>

#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/prediction/prediction_report.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

using EdgeLogFactor = std::function<double(const CommEdge&)>;

// Returns how far the time of an edge alone may be off; null: not known.
EdgeLogFactor LogFactorOf(const PredictionIntervals& intervals) {
  if (intervals.empty()) return nullptr;
  return [&intervals](const CommEdge& edge) { return intervals.LogFactor(TraitsOf(edge)); };
}

// Sets how far each edge of the report may be off; `edges` are as many, in the same order.
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

absl::StatusOr<PredictionNetwork> ReadPredictionNetwork(FileSystem& file_system,
                                                        const NetworkFlags& flags) {
  ASSIGN_OR_RETURN(const CalibrationFiles files,
                   NamedCalibration(file_system, flags.calibration, flags.files));
  PredictionNetwork network;
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(network.config, ReadTimingConfig(file_system, flags.config));
  }
  TimingConfig& config = network.config;
  config.mode = flags.mode.value_or(config.mode);
  config.congestion = flags.congestion.value_or(config.congestion);
  if (!flags.cache_folder.empty()) config.cache_folder = flags.cache_folder;
  if (!files.corrections.empty()) config.corrections = files.corrections;
  if (!files.network.empty()) {
    config.topologies = {{"", {files.network, "", files.calibrated_network}}};
    ASSIGN_OR_RETURN(const NamedNetwork named, ReadNetwork(file_system, files));
    network.intervals = named.intervals;
    network.is_measured = named.is_measured;
  }
  network.files = {config.corrections, flags.config, files.report, files.calibrated_network};
  for (auto& [key, topology] : config.topologies) {
    if (!files.system.empty()) topology.system = files.system;
    network.files.insert(network.files.end(), {topology.network, topology.system});
  }
  return network;
}

absl::StatusOr<PredictionReport> PredictEdgeList(FileSystem& file_system, const std::string& path,
                                                 const InputFileOptions& input,
                                                 const PredictionNetwork& network,
                                                 absl::FunctionRef<void(uint64_t)> progress) {
  ASSIGN_OR_RETURN(const CommEdgeList list, ReadCommEdges(file_system, path, input));
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(file_system, network.config));
  ASSIGN_OR_RETURN(PredictionReport report,
                   PredictEdges(setup, list, network.config.mode, progress));
  AddIntervals(LogFactorOf(network.intervals), list.edges, &report);
  return report;
}

absl::StatusOr<PredictionReport> PredictWorkload(FileSystem& file_system, WorkloadOptions options,
                                                 const PredictionNetwork& network,
                                                 OutputFiles* outputs) {
  ASSIGN_OR_RETURN(const EtFiles traces, FindEtFiles(file_system, options.prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(traces, options.prefix));
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(file_system, network.config));
  EtGraphReaderOptions reading;
  reading.input = options.input;
  reading.progress = std::exchange(options.bytes_read, nullptr);
  ASSIGN_OR_RETURN(reading.groups, FindCommGroups(file_system, options.comm_groups, ""));
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, traces, reading));
  reading.progress = nullptr;
  const CommunicationMatch match(graph);
  ASSIGN_OR_RETURN(
      const IterationPrediction prediction,
      Annotate(PredictIteration(setup, graph, match, options.iteration), options.prefix));
  PredictionReport report = MakeIterationReport(prediction, options.iteration.mode, setup, graph);
  const EdgeLogFactor log_factor = LogFactorOf(network.intervals);
  AddIntervals(log_factor, prediction.edges.edges, &report);
  SimulatedTimes& times = *report.mutable_workload()->mutable_times();
  ASSIGN_OR_RETURN(
      times, TimeIteration(prediction, graph, match, options.iteration.resources, log_factor));
  if (times.has_measured_ns() && !network.is_measured) {
    times.clear_measured_ns();
    report.add_warnings(kNotMeasuredHere);
  }
  if (options.manifest.empty()) return report;
  PredictionReport manifest = report;
  for (int e = 0; e < manifest.edges_size(); ++e) {
    const std::vector<int32_t>& devices = prediction.edges.edges[e].participants;
    manifest.mutable_edges(e)->mutable_participants()->Add(devices.begin(), devices.end());
  }
  RETURN_IF_ERROR(outputs->Write("manifest", options.manifest, [&](ByteSink& sink) {
    return sink.Append(ReportToJson(manifest));
  }));
  return report;
}

}  // namespace meridian
