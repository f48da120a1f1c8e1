// astra_predict: how long communication takes, and workloads with it.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/engine/simulated_times.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/schedule/iteration_times.h"
#include "astra_bridge/schedule/prediction_report.h"
#include "astra_bridge/schedule/prediction_report.pb.h"
#include "astra_bridge/schedule/prediction_text.h"
#include "astra_bridge/schedule/snapshot_manifest.pb.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/parallel_for.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_et(
    "et", "", "The workload: the PREFIX of its execution traces, PREFIX.<rank>.et[.gz].");
Flag<std::string> FLAGS_comm_groups(
    "comm_groups", "",
    "With --et: JSON file with the ranks of process groups. Default: PREFIX.comm_groups.json, "
    "if there is one.");
Flag<std::string> FLAGS_edges("edges", "", "Instead of a workload: a list of edges, JSONL.");
Flag<std::string> FLAGS_config(
    "config", "",
    "How to time it: YAML with model, networks, groups, devices. The other flags override "
    "it.");
Flag<std::string> FLAGS_calibration(
    "calibration", "",
    "The folder of a calibration (astra_calibrate --calibration): network, system, "
    "corrections, and how far predictions may be off. Single flags replace its files. With "
    "--et, a comma list compares several.");
Flag<std::string> FLAGS_network(
    "network", "",
    "The network of all edges: AstraSim's YAML. Instead of the configuration's topologies. "
    "With --et, a comma list compares several; each of the other files is then one for all, "
    "or one for each.");
Flag<std::string> FLAGS_system(
    "system", "",
    "How collectives are carried out: AstraSim's system JSON. Default: what suits the "
    "network.");
Flag<std::string> FLAGS_engine(
    "engine", "",
    "analytical, embedded, or sidecar (the user's AstraSim). Default: the configuration's "
    "model; without one embedded for a workload, analytical for a list.");
Flag<std::string> FLAGS_mode(
    "mode", "",
    "isolated: every edge alone; snapshot: with all that runs at once (of a list, all of "
    "it). Default: the configuration's, or isolated.");
Flag<std::string> FLAGS_partition(
    "partition", "none",
    "With --et: which edges cannot meet: none, fabric, kind (an assumption) or link_domain.");
Flag<int64_t> FLAGS_coalesce_below_kib(
    "coalesce_below_kib", 0,
    "With --et: edges of fewer KiB disturb nobody, and snapshots that differ only in them "
    "are one.");
Flag<std::string> FLAGS_resources(
    "resources", "streams",
    "With --et: streams: a stream or thread runs one node at a time; simulator: a rank runs "
    "one computation and one communication at a time, as in ASTRA-sim.");
Flag<int32_t> FLAGS_threads(
    "threads", 0,
    "With --et: how many threads time edges and snapshots. Default: as many as the machine "
    "has.");
Flag<std::string> FLAGS_manifest(
    "manifest", "",
    "With --et --mode=snapshot: where the list of snapshots goes: JSON, or a binary message "
    "when it ends in .pb; gzip when .gz follows.");
Flag<std::string> FLAGS_congestion(
    "congestion", "",
    "aware: messages share links; unaware: they never slow each other down. Default: the "
    "configuration's, or aware.");
Flag<std::string> FLAGS_astra_binary(
    "astra_binary", "", "With --engine=sidecar: the AstraSim program. Default: found on PATH.");
Flag<double> FLAGS_astra_timeout_s(
    "astra_timeout_s", 0,
    "With --engine=sidecar: how long a run of it may take. Default: the configuration's, or "
    "600.");
Flag<std::string> FLAGS_corrections(
    "corrections", "",
    "Corrections of a calibration: JSON. What edges wait for others lasts as much longer as the "
    "others do.");
Flag<std::string> FLAGS_csv(
    "csv", "",
    "With --et: where the times on each network go: makespan, exposed communication, what was "
    "measured.");
Flag<std::string> FLAGS_cache(
    "cache", "",
    "off, readonly or readwrite: keep simulated times for the next run. Default: off, or "
    "readwrite when a folder for it is given.");
Flag<std::string> FLAGS_cache_dir("cache_dir", "",
                                  "Folder of the cache. Default: meridian in the user's own.");

constexpr int64_t kMaxCoalescedKib = int64_t{1} << 40;
constexpr int32_t kMaxThreads = 1024;

// Sets the model to what the flag names, when it is given.
absl::Status ApplyEngineFlag(TimingConfig* config) {
  if (FLAGS_engine.value().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(config->model,
                   NamedValue<TimingModel>(FLAGS_engine, {{"analytical", TimingModel::kAnalytical},
                                                          {"embedded", TimingModel::kEmbedded},
                                                          {"sidecar", TimingModel::kAstra}}));
  return absl::OkStatus();
}

// Sets *value to what the flag names, when it is given.
template <typename Enum, typename Result>
absl::Status ApplyNameFlag(const Flag<std::string>& flag,
                           std::optional<Enum> (*from_name)(absl::string_view),
                           absl::string_view names, Result* value) {
  const std::string name = flag.value();
  if (name.empty()) return absl::OkStatus();
  const std::optional<Enum> found = from_name(name);
  if (!found.has_value()) return NoneOf(flag.name(), name, names);
  *value = *found;
  return absl::OkStatus();
}

void ApplyPathFlag(const Flag<std::string>& flag, std::string* value) {
  if (!flag.value().empty()) *value = UserPath(flag);
}

absl::Status ApplyTimeoutFlag(TimingConfig* config) {
  const double seconds = FLAGS_astra_timeout_s.value();
  if (seconds == 0) return absl::OkStatus();
  if (!(seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--astra_timeout_s=", seconds, " is no time above 0"));
  }
  config->astra_timeout = absl::Seconds(seconds);
  return absl::OkStatus();
}

// Returns the networks that the flags name; one without files when it is the configuration's.
absl::StatusOr<std::vector<CalibrationFiles>> NamedFiles() {
  return NamedCalibrations(
      FileSystem::Posix(), FLAGS_calibration.value(),
      {FLAGS_network.value(), FLAGS_system.value(), FLAGS_corrections.value(), ""});
}

absl::StatusOr<TimingConfig> ReadConfig(const CalibrationFiles& named) {
  TimingConfig config;
  const std::string path = UserPath(FLAGS_config);
  if (!path.empty()) {
    ASSIGN_OR_RETURN(config, ReadTimingConfig(FileSystem::Posix(), path));
  }
  if (!named.network.empty()) {
    config.topologies.clear();
    config.layout.rank_to_device_by_topology.clear();
    config.topologies[""].network = named.network;
  }
  for (auto& [key, files] : config.topologies) {
    if (!named.system.empty()) files.system = named.system;
  }
  RETURN_IF_ERROR(ApplyEngineFlag(&config));
  RETURN_IF_ERROR(
      ApplyNameFlag(FLAGS_mode, TimingModeFromName, "isolated, snapshot", &config.mode));
  RETURN_IF_ERROR(
      ApplyNameFlag(FLAGS_congestion, CongestionFromName, "aware, unaware", &config.congestion));
  RETURN_IF_ERROR(
      ApplyNameFlag(FLAGS_cache, CacheModeFromName, "off, readonly, readwrite", &config.cache));
  RETURN_IF_ERROR(ApplyTimeoutFlag(&config));
  ApplyPathFlag(FLAGS_astra_binary, &config.astra_binary);
  if (!named.corrections.empty()) config.corrections = named.corrections;
  ApplyPathFlag(FLAGS_cache_dir, &config.cache_folder);
  return config;
}

TimingEnvironment MachineEnvironment() {
  TimingEnvironment environment;
  environment.search_path = EnvironmentVariable("PATH");
  environment.work_folder = UserInputOptions().temporary_directory;
  const std::string cache = EnvironmentVariable("XDG_CACHE_HOME");
  const std::string home = EnvironmentVariable("HOME");
  if (!cache.empty()) {
    environment.cache_folder = absl::StrCat(cache, "/meridian");
  } else if (!home.empty()) {
    environment.cache_folder = absl::StrCat(home, "/.cache/meridian");
  }
  environment.require_astra = FLAGS_engine.value() == "sidecar";
  return environment;
}

// Sets how far each edge of the report may be off; `edges` are as many, in the same order.
void AddIntervals(const PredictionIntervals& intervals, const std::vector<CommEdge>& edges,
                  int64_t ranks, PredictionReport* report) {
  if (intervals.empty()) return;
  for (size_t i = 0; i < edges.size(); ++i) {
    EdgePrediction& edge = *report->mutable_edges(static_cast<int>(i));
    const double factor = std::exp(intervals.LogFactor(TraitsOf({&edges[i], 1}, ranks)[0]));
    edge.set_low_seconds(edge.seconds() / factor);
    edge.set_high_seconds(edge.seconds() * factor);
  }
}

absl::StatusOr<PredictionReport> PredictList(const CalibrationFiles& files) {
  ASSIGN_OR_RETURN(const TimingConfig config, ReadConfig(files));
  ASSIGN_OR_RETURN(const PredictionIntervals intervals, ReadIntervals(FileSystem::Posix(), files));
  ASSIGN_OR_RETURN(CommEdgeList list,
                   ReadCommEdges(FileSystem::Posix(), UserPath(FLAGS_edges), UserInputOptions()));
  ASSIGN_OR_RETURN(const TimingSetup setup,
                   SetUpTiming(FileSystem::Posix(), config, MachineEnvironment()));
  // On devices, as they are timed.
  std::vector<CommEdge> placed;
  if (!intervals.empty()) {
    placed = list.edges;
    RETURN_IF_ERROR(PlaceEdges(setup.layout, &placed));
  }
  const auto progress = ShowProgress("timing edges", list.edges.size());
  ASSIGN_OR_RETURN(PredictionReport report,
                   PredictEdges(setup, std::move(list), config.mode, progress));
  AddIntervals(intervals, placed, setup.fabrics->MostNpus(), &report);
  return report;
}

absl::StatusOr<CommGroups> ReadGroups(const std::string& prefix) {
  std::string path = UserPath(FLAGS_comm_groups);
  if (path.empty()) {
    path = CommGroupsBeside(FileSystem::Posix(), prefix);
    if (path.empty()) return CommGroups();
    std::fprintf(stderr, "astra_predict: note: process groups are those of %s\n",
                 Printable(path).c_str());
  }
  return ReadCommGroups(FileSystem::Posix(), path);
}

absl::StatusOr<ExecutionGraph> ReadWorkload(const std::string& prefix, const EtFiles& files) {
  EtGraphReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(options.groups, ReadGroups(prefix));
  options.progress = ShowBytesRead();
  return ReadEtGraph(FileSystem::Posix(), files, options);
}

absl::StatusOr<IterationOptions> ReadIterationOptions(TimingMode mode) {
  IterationOptions options;
  options.mode = mode;
  RETURN_IF_ERROR(ApplyNameFlag(FLAGS_partition, TrafficSnapshotPartitionFromName,
                                "none, fabric, kind, link_domain", &options.partition));
  if (!FLAGS_resources.value().empty()) {
    ASSIGN_OR_RETURN(
        options.resources,
        NamedValue<ReplayResources>(FLAGS_resources, {{"streams", ReplayResources::kPerResource},
                                                      {"simulator", ReplayResources::kSimulator}}));
  }
  const int64_t kib = FLAGS_coalesce_below_kib.value();
  if (kib < 0 || kib > kMaxCoalescedKib) {
    return NoneOf("coalesce_below_kib", absl::StrCat(kib), absl::StrCat("0 to ", kMaxCoalescedKib));
  }
  options.coalesce_below_bytes = kib << 10;
  const int32_t threads = FLAGS_threads.value();
  if (threads < 0 || threads > kMaxThreads) {
    return NoneOf("threads", absl::StrCat(threads), absl::StrCat("0 to ", kMaxThreads));
  }
  options.threads = threads == 0 ? MachineThreads() : threads;
  if (mode != TimingMode::kSnapshot && !FLAGS_manifest.value().empty()) {
    return absl::InvalidArgumentError("--manifest lists snapshots, which only --mode=snapshot has");
  }
  return options;
}

absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictWithProgress(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    IterationOptions options) {
  // One bar after the other.
  std::optional<ProgressBar> bar;
  std::pair<std::string, uint64_t> shown;
  options.progress = [&](absl::string_view stage, uint64_t done, uint64_t total) {
    if (!bar.has_value() || stage != shown.first || total != shown.second) {
      shown = {std::string(stage), total};
      bar.emplace(shown.first, total);
    }
    bar->Update(done);
  };
  return PredictIteration(setup, graph, match, options);
}

// Neither of the traces nor of the other inputs is overwritten.
absl::Status CheckOutputs(const std::vector<CalibrationFiles>& networks) {
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   SimulationInputs(FileSystem::Posix(), UserPath(FLAGS_et), networks));
  inputs.insert(inputs.end(), {UserPath(FLAGS_config), UserPath(FLAGS_comm_groups)});
  if (!FLAGS_config.value().empty()) {
    ASSIGN_OR_RETURN(const TimingConfig config,
                     ReadTimingConfig(FileSystem::Posix(), UserPath(FLAGS_config)));
    for (const auto& [key, files] : config.topologies) {
      inputs.insert(inputs.end(), {files.network, files.system});
    }
    inputs.push_back(config.corrections);
  }
  return CheckOutputPaths(inputs, {UserPath(FLAGS_manifest), UserPath(FLAGS_csv)});
}

absl::Status WriteManifest(const SnapshotManifest& manifest, const std::string& path,
                           OutputFiles* outputs) {
  const bool binary = absl::EndsWith(absl::StripSuffix(path, ".gz"), ".pb");
  return outputs->Write("manifest", path, [&](ByteSink& sink) {
    return binary ? sink.Append(manifest.SerializeAsString()) : WriteReportJson(manifest, &sink);
  });
}

// The workload of --et, read once.
struct PredictedWorkload {
  explicit PredictedWorkload(ExecutionGraph read) : graph(std::move(read)), match(graph) {}

  const ExecutionGraph graph;
  const CommunicationMatch match;
};

// Reads the workload after all that is smaller, into *workload unless it is there.
absl::StatusOr<PredictionReport> PredictWorkload(const CalibrationFiles& files,
                                                 std::unique_ptr<PredictedWorkload>* workload,
                                                 OutputFiles* outputs) {
  const std::string prefix = UserPath(FLAGS_et);
  const std::string manifest_path = UserPath(FLAGS_manifest);
  ASSIGN_OR_RETURN(TimingConfig config, ReadConfig(files));
  ASSIGN_OR_RETURN(const PredictionIntervals intervals, ReadIntervals(FileSystem::Posix(), files));
  // Formulas know nothing of what runs at once.
  if (FLAGS_config.value().empty() && FLAGS_engine.value().empty()) {
    config.model = TimingModel::kEmbedded;
  }
  ASSIGN_OR_RETURN(const IterationOptions options, ReadIterationOptions(config.mode));
  ASSIGN_OR_RETURN(const EtFiles traces, FindEtFiles(FileSystem::Posix(), prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(traces, prefix));
  const int64_t ranks = static_cast<int64_t>(traces.files.size());
  TimingEnvironment environment = MachineEnvironment();
  environment.ranks = ranks;
  ASSIGN_OR_RETURN(const TimingSetup setup, SetUpTiming(FileSystem::Posix(), config, environment));
  if (*workload == nullptr) {
    ASSIGN_OR_RETURN(ExecutionGraph graph, ReadWorkload(prefix, traces));
    *workload = std::make_unique<PredictedWorkload>(std::move(graph));
  }
  const ExecutionGraph& graph = (*workload)->graph;
  const CommunicationMatch& match = (*workload)->match;
  const absl::StatusOr<std::unique_ptr<IterationPrediction>> prediction =
      PredictWithProgress(setup, graph, match, options);
  if (!prediction.ok()) return Annotate(prediction.status(), prefix);
  if (!manifest_path.empty()) {
    RETURN_IF_ERROR(
        WriteManifest(MakeSnapshotManifest(**prediction, options, setup.timing->engine(), graph),
                      manifest_path, outputs));
  }
  PredictionReport report = MakeIterationReport(**prediction, options, setup, graph, match);
  report.set_network(files.name);
  AddIntervals(intervals, (*prediction)->edges.edges, ranks, &report);
  std::function<double(const CommEdge&)> log_factor;
  if (!intervals.empty()) {
    log_factor = [&](const CommEdge& edge) {
      return intervals.LogFactor(TraitsOf({&edge, 1}, ranks)[0]);
    };
  }
  ASSIGN_OR_RETURN(*report.mutable_workload()->mutable_times(),
                   TimeIteration(**prediction, graph, match, options.resources, log_factor));
  return report;
}

// Flags that mean something for a workload only.
absl::Status CheckListFlags() {
  const std::initializer_list<const AnyFlag*> flags = {
      &FLAGS_comm_groups, &FLAGS_partition, &FLAGS_coalesce_below_kib,
      &FLAGS_resources,   &FLAGS_threads,   &FLAGS_manifest,
      &FLAGS_csv};
  for (const AnyFlag* flag : flags) {
    if (flag->given()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag->name(), " is for workloads, --et; all edges of a list start at once"));
    }
  }
  return absl::OkStatus();
}

void Warn(const PredictionReport& report) {
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "astra_predict: warning: %s\n", Printable(warning).c_str());
  }
  if (report.fallbacks() > 0) {
    std::fprintf(stderr, "astra_predict: warning: %s did not time all: %s\n",
                 report.engine().c_str(), Printable(report.fallback_details(0).reason()).c_str());
  }
}

absl::StatusOr<int> Predict() {
  const bool has_et = !FLAGS_et.value().empty();
  const bool has_edges = !FLAGS_edges.value().empty();
  if (has_et == has_edges) {
    return absl::InvalidArgumentError(
        "give either a workload or a list of edges, e.g. --et=run/llama --network=network.yml or "
        "--edges=edges.jsonl --network=network.yml");
  }
  if (has_edges) RETURN_IF_ERROR(CheckListFlags());
  ASSIGN_OR_RETURN(const std::vector<CalibrationFiles> networks, NamedFiles());
  if (networks.size() > 1 && (has_edges || !FLAGS_manifest.value().empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        networks.size(), " networks are named; ",
        has_edges ? "lists of edges are timed on one" : "--manifest lists the snapshots of one"));
  }
  if (has_edges) {
    ASSIGN_OR_RETURN(const PredictionReport report, PredictList(networks[0]));
    Warn(report);
    return PrintReport(report, FormatPrediction);
  }
  RETURN_IF_ERROR(CheckOutputs(networks));
  OutputFiles outputs(FileSystem::Posix());
  PredictionComparison comparison;
  std::unique_ptr<PredictedWorkload> workload;
  for (const CalibrationFiles& files : networks) {
    ASSIGN_OR_RETURN(*comparison.add_networks(), PredictWorkload(files, &workload, &outputs));
    Warn(comparison.networks(comparison.networks_size() - 1));
  }
  const std::string csv = UserPath(FLAGS_csv);
  RETURN_IF_ERROR(outputs.WriteText("table", csv, NetworksCsv(NetworksOf(comparison))));
  RETURN_IF_ERROR(outputs.Commit());
  if (networks.size() > 1) return PrintReport(comparison, FormatPredictionComparison);
  return PrintReport(comparison.networks(0), FormatIteration);
}

}  // namespace

Command AstraPredictCommand() {
  return {
      "astra_predict",
      "Predicts how long a workload takes on a network, with communication alone or with all that "
      "runs at once, by formulas, by simulation in process, or by the user's AstraSim; or how "
      "long the edges of a list take.",
      {"astra_predict --et=run/llama --calibration=machine/",
       "astra_predict --et=run/llama --network=ring.yml,switch.yml --csv=networks.csv",
       "astra_predict --et=run/llama --network=network.yml --system=system.json --mode=snapshot "
       "--manifest=snapshots.json",
       "astra_predict --edges=edges.jsonl --network=network.yml",
       "astra_predict --edges=edges.jsonl --network=network.yml --system=system.json "
       "--engine=embedded --mode=snapshot --cache=readwrite --json",
       "astra_predict --edges=edges.jsonl --config=timing.yml"},
      {&FLAGS_et,
       &FLAGS_comm_groups,
       &FLAGS_edges,
       &FLAGS_config,
       &FLAGS_calibration,
       &FLAGS_network,
       &FLAGS_system,
       &FLAGS_engine,
       &FLAGS_mode,
       &FLAGS_partition,
       &FLAGS_coalesce_below_kib,
       &FLAGS_resources,
       &FLAGS_threads,
       &FLAGS_manifest,
       &FLAGS_congestion,
       &FLAGS_astra_binary,
       &FLAGS_astra_timeout_s,
       &FLAGS_corrections,
       &FLAGS_csv,
       &FLAGS_cache,
       &FLAGS_cache_dir},
      Predict};
}

}  // namespace meridian
