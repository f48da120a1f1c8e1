#include "astra_bridge/prediction/prediction_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

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

// Returns a report of what was asked, what the cache saved, and the warnings of the setup. To be called
// after the timing.
PredictionReport StartReport(const TimingSetup& setup, TimingMode mode) {
  PredictionReport report;
  report.set_engine(absl::StrCat("embedded, ", CongestionName(setup.congestion)));
  report.set_mode(mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
  if (setup.cache != nullptr) report.set_cache_hits(setup.cache->hits());
  for (const std::string& warning : setup.warnings) report.add_warnings(warning);
  return report;
}

EdgePrediction* AddEdge(const CommEdge& edge, double isolated_seconds, double seconds,
                        PredictionReport* report) {
  EdgePrediction* added = report->add_edges();
  added->set_id(edge.id);
  added->set_seconds(seconds);
  added->set_isolated_seconds(isolated_seconds);
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
  return added;
}

void AddDevices(const CommEdge& edge, EdgePrediction* prediction) {
  prediction->mutable_participants()->Add(edge.participants.begin(), edge.participants.end());
}

// Sets the mean of time together over time alone, weighed by the time alone.
void SetInflation(PredictionReport* report) {
  double together = 0, alone = 0;
  for (const EdgePrediction& edge : report->edges()) {
    together += edge.seconds();
    alone += edge.isolated_seconds();
  }
  report->set_inflation(alone > 0 ? together / alone : 1);
}

absl::StatusOr<std::vector<double>> TogetherSeconds(const TimingSetup& setup,
                                                    const std::vector<CommEdge>& edges,
                                                    const std::vector<double>& isolated_seconds) {
  ASSIGN_OR_RETURN(const ScaledTransfers shared, ShareNetworks(setup, edges, isolated_seconds));
  EdgeSchedule at_once;
  for (const CommEdge& edge : edges) at_once.begins_ns.emplace_back(edge.participants.size(), 0);
  ASSIGN_OR_RETURN(std::vector<double> seconds, shared.transfers.LastsNs(at_once, shared.scales));
  for (double& edge : seconds) edge /= kNsPerSecond;
  return seconds;
}

constexpr size_t kMaxRequestBytes = size_t{64} << 20;

// Reads the lines up to an empty one, or to the end of the input. False when there are no more. What
// is beyond kMaxRequestBytes is read and forgotten.
bool ReadRequest(std::istream& requests, std::string* request) {
  request->clear();
  char last = '\n';
  for (char c; requests.get(c); last = c) {
    if (c == '\n' && last == '\n') {
      if (!request->empty()) return true;
    } else if (request->size() <= kMaxRequestBytes) {
      request->push_back(c);
    }
  }
  return !request->empty();
}

absl::StatusOr<PredictionReport> AnswerRequest(const TimingSetup& setup,
                                               const EdgeLogFactor& log_factor,
                                               const std::string& request) {
  if (request.size() > kMaxRequestBytes) {
    return InvalidArgument("a request of more than ", kMaxRequestBytes >> 20, " MiB is too long");
  }
  ASSIGN_OR_RETURN(const CommEdgeList list, ParseCommEdges(request, "request"));
  const TimingMode mode = list.edges.size() > 1 ? TimingMode::kSnapshot : TimingMode::kIsolated;
  ASSIGN_OR_RETURN(PredictionReport report, PredictEdges(setup, list, mode, [](uint64_t) {}));
  AddIntervals(log_factor, list.edges, &report);
  return report;
}

std::string AnswerLine(const absl::StatusOr<PredictionReport>& report) {
  std::string line;
  if (report.ok()) {
    line = ReportToCompactJson(*report);
  } else {
    JsonWriter json(&line);
    json.BeginObject();
    json.Member("error", report.status().message());
    json.Member("exit_code", ExitCode(report.status()));
    json.EndObject();
  }
  absl::StripTrailingAsciiWhitespace(&line);
  return line + "\n";
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

absl::Status ServeEdges(FileSystem& file_system, const PredictionNetwork& network,
                        std::istream& requests,
                        absl::FunctionRef<absl::Status(const std::string&)> answer) {
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(file_system, network.config));
  const EdgeLogFactor log_factor = LogFactorOf(network.intervals);
  RETURN_IF_ERROR(
      answer(AnswerLine(PredictEdges(setup, {}, TimingMode::kIsolated, [](uint64_t) {}))));
  for (std::string request; ReadRequest(requests, &request);) {
    RETURN_IF_ERROR(answer(AnswerLine(AnswerRequest(setup, log_factor, request))));
  }
  return absl::OkStatus();
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
    AddDevices(prediction.edges.edges[e], manifest.mutable_edges(e));
  }
  RETURN_IF_ERROR(outputs->Write("manifest", options.manifest, [&](ByteSink& sink) {
    return sink.Append(ReportToJson(manifest));
  }));
  return report;
}

PredictionReport MakeIterationReport(const IterationPrediction& prediction, TimingMode mode,
                                     const TimingSetup& setup, const ExecutionGraph& graph) {
  PredictionReport report = StartReport(setup, mode);
  report.set_iteration_ns(prediction.times.replay.makespan_ns);
  report.mutable_workload()->set_isolated_iteration_ns(prediction.isolated_makespan_ns);
  for (CommEdgeIndex edge = 0; edge < prediction.edges.edges.size(); ++edge) {
    EdgePrediction* added = AddEdge(prediction.edges.edges[edge], prediction.isolated_seconds[edge],
                                    prediction.seconds[edge], &report);
    added->set_name(std::string(graph.name(prediction.edges.nodes[edge])));
    added->set_start_ns(prediction.times.starts_ns[edge]);
  }
  SetInflation(&report);
  for (const auto& [type, count] : prediction.edges.not_priced) {
    report.add_warnings(
        absl::StrCat(WithThousands(count), " collectives of type ", type,
                     " last as long as in the traces: no network timing knows them"));
  }
  return report;
}

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, const CommEdgeList& list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  ASSIGN_OR_RETURN(const std::vector<double> isolated,
                   EstimateEdges(setup.timing, list.edges, progress));
  PredictionReport report = StartReport(setup, mode);
  report.set_duplicates_dropped(list.duplicates_dropped);
  std::vector<double> seconds = isolated;
  if (mode == TimingMode::kSnapshot) {
    ASSIGN_OR_RETURN(seconds, TogetherSeconds(setup, list.edges, isolated));
  }
  double longest = 0;
  for (size_t i = 0; i < list.edges.size(); ++i) {
    AddDevices(list.edges[i], AddEdge(list.edges[i], isolated[i], seconds[i], &report));
    longest = std::max(longest, seconds[i]);
  }
  report.set_iteration_ns(std::llround(longest * kNsPerSecond));
  SetInflation(&report);
  return report;
}

}  // namespace meridian
