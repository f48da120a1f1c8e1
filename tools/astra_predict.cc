// astra_predict: how long communication takes, and workloads with it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/edges/comm_edge_list.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/iteration_prediction.h"
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
#include "tools/pipeline/output_files.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/parallel_for.h"
#include "xla_profiler/base/tables/text_table.h"

ABSL_FLAG(std::string, et, "",
          "The workload: the PREFIX of its execution traces, PREFIX.<rank>.et[.gz].");
ABSL_FLAG(
    std::string, comm_groups, "",
    "With --et: JSON file with the ranks of process groups. Default: PREFIX.comm_groups.json, "
    "if there is one.");
ABSL_FLAG(std::string, edges, "", "Instead of a workload: a list of edges, JSONL.");
ABSL_FLAG(std::string, config, "",
          "How to time it: YAML with model, networks, groups, devices. The other flags override "
          "it.");
ABSL_FLAG(std::string, network, "",
          "The network of all edges: AstraSim's YAML. Instead of the configuration's topologies.");
ABSL_FLAG(std::string, system, "",
          "How collectives are carried out: AstraSim's system JSON. Default: what suits the "
          "network.");
ABSL_FLAG(std::string, engine, "",
          "analytical, embedded, or sidecar (the user's AstraSim). Default: the configuration's "
          "model; without one embedded for a workload, analytical for a list.");
ABSL_FLAG(std::string, mode, "",
          "isolated: every edge alone; snapshot: with all that runs at once (of a list, all of "
          "it). Default: the configuration's, or isolated.");
ABSL_FLAG(std::string, partition, "none",
          "With --et: which edges cannot meet: none, fabric, kind (an assumption) or link_domain.");
ABSL_FLAG(int64_t, coalesce_below_kib, 0,
          "With --et: edges of fewer KiB disturb nobody, and snapshots that differ only in them "
          "are one.");
ABSL_FLAG(std::string, resources, "streams",
          "With --et: streams: a stream or thread runs one node at a time; simulator: a rank runs "
          "one computation and one communication at a time, as in ASTRA-sim.");
ABSL_FLAG(int32_t, threads, 0,
          "With --et: how many threads time edges and snapshots. Default: as many as the machine "
          "has.");
ABSL_FLAG(std::string, manifest, "",
          "With --et --mode=snapshot: where the list of snapshots goes: JSON, or a binary message "
          "when it ends in .pb; gzip when .gz follows.");
ABSL_FLAG(std::string, congestion, "",
          "aware: messages share links; unaware: they never slow each other down. Default: the "
          "configuration's, or aware.");
ABSL_FLAG(std::string, astra_binary, "",
          "With --engine=sidecar: the AstraSim program. Default: found on PATH.");
ABSL_FLAG(double, astra_timeout_s, 0,
          "With --engine=sidecar: how long a run of it may take. Default: the configuration's, or "
          "600.");
ABSL_FLAG(
    std::string, corrections, "",
    "Corrections of a calibration: JSON. What edges wait for others lasts as much longer as the "
    "others do.");
ABSL_FLAG(std::string, cache, "",
          "off, readonly or readwrite: keep simulated times for the next run. Default: off, or "
          "readwrite when a folder for it is given.");
ABSL_FLAG(std::string, cache_dir, "", "Folder of the cache. Default: meridian in the user's own.");

namespace meridian {
namespace {

constexpr int64_t kMaxCoalescedKib = int64_t{1} << 40;
constexpr int32_t kMaxThreads = 1024;

absl::Status WrongFlag(absl::string_view flag, absl::string_view value, absl::string_view names) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, " is none of ", names));
}

absl::Status ApplyEngineFlag(TimingConfig* config) {
  const std::string engine = absl::GetFlag(FLAGS_engine);
  if (engine.empty()) return absl::OkStatus();
  if (engine == "analytical") {
    config->model = TimingModel::kAnalytical;
  } else if (engine == "embedded") {
    config->model = TimingModel::kEmbedded;
  } else if (engine == "sidecar") {
    config->model = TimingModel::kAstra;
  } else {
    return WrongFlag("engine", engine, "analytical, embedded, sidecar");
  }
  return absl::OkStatus();
}

// Sets *value to what the flag names, when it is given.
template <typename Enum, typename Result>
absl::Status ApplyNameFlag(absl::string_view flag, const std::string& name,
                           std::optional<Enum> (*from_name)(absl::string_view),
                           absl::string_view names, Result* value) {
  if (name.empty()) return absl::OkStatus();
  const std::optional<Enum> found = from_name(name);
  if (!found.has_value()) return WrongFlag(flag, name, names);
  *value = *found;
  return absl::OkStatus();
}

void ApplyPathFlag(const std::string& path, std::string* value) {
  if (!path.empty()) *value = UserPath(path);
}

absl::Status ApplyTimeoutFlag(TimingConfig* config) {
  const double seconds = absl::GetFlag(FLAGS_astra_timeout_s);
  if (seconds == 0) return absl::OkStatus();
  if (!(seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--astra_timeout_s=", seconds, " is no time above 0"));
  }
  config->astra_timeout = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::StatusOr<TimingConfig> ReadConfig() {
  TimingConfig config;
  const std::string path = absl::GetFlag(FLAGS_config);
  if (!path.empty()) {
    ASSIGN_OR_RETURN(config, ReadTimingConfig(FileSystem::Posix(), UserPath(path)));
  }
  const std::string network = absl::GetFlag(FLAGS_network);
  if (!network.empty()) {
    config.topologies.clear();
    config.layout.rank_to_device_by_topology.clear();
    config.topologies[""].network = UserPath(network);
  }
  for (auto& [key, files] : config.topologies) {
    ApplyPathFlag(absl::GetFlag(FLAGS_system), &files.system);
  }
  RETURN_IF_ERROR(ApplyEngineFlag(&config));
  RETURN_IF_ERROR(ApplyNameFlag("mode", absl::GetFlag(FLAGS_mode), TimingModeFromName,
                                "isolated, snapshot", &config.mode));
  RETURN_IF_ERROR(ApplyNameFlag("congestion", absl::GetFlag(FLAGS_congestion), CongestionFromName,
                                "aware, unaware", &config.congestion));
  RETURN_IF_ERROR(ApplyNameFlag("cache", absl::GetFlag(FLAGS_cache), CacheModeFromName,
                                "off, readonly, readwrite", &config.cache));
  RETURN_IF_ERROR(ApplyTimeoutFlag(&config));
  ApplyPathFlag(absl::GetFlag(FLAGS_astra_binary), &config.astra_binary);
  ApplyPathFlag(absl::GetFlag(FLAGS_corrections), &config.corrections);
  ApplyPathFlag(absl::GetFlag(FLAGS_cache_dir), &config.cache_folder);
  return config;
}

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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
  environment.require_astra = absl::GetFlag(FLAGS_engine) == "sidecar";
  return environment;
}

// The bar is gone before anything is printed.
absl::StatusOr<PredictionReport> PredictEdgesWithProgress(const TimingSetup& setup,
                                                          CommEdgeList list, TimingMode mode) {
  ProgressBar progress("timing edges", list.edges.size());
  return PredictEdges(setup, std::move(list), mode, [&](uint64_t done) { progress.Update(done); });
}

absl::StatusOr<PredictionReport> PredictList() {
  ASSIGN_OR_RETURN(const TimingConfig config, ReadConfig());
  ASSIGN_OR_RETURN(
      CommEdgeList list,
      ReadCommEdges(FileSystem::Posix(), UserPath(absl::GetFlag(FLAGS_edges)), UserInputOptions()));
  ASSIGN_OR_RETURN(const TimingSetup setup,
                   SetUpTiming(FileSystem::Posix(), config, MachineEnvironment()));
  return PredictEdgesWithProgress(setup, std::move(list), config.mode);
}

absl::StatusOr<CommGroups> ReadGroups(const std::string& prefix) {
  std::string path = UserPath(absl::GetFlag(FLAGS_comm_groups));
  if (path.empty()) {
    path = CommGroupsBeside(FileSystem::Posix(), prefix);
    if (path.empty()) return CommGroups();
    std::fprintf(stderr, "astra_predict: note: process groups are those of %s\n",
                 Printable(path).c_str());
  }
  return ReadCommGroups(FileSystem::Posix(), path);
}

absl::StatusOr<ExecutionGraph> ReadWorkload(const std::string& prefix) {
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(FileSystem::Posix(), prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  EtGraphReaderOptions options;
  options.input = UserInputOptions();
  ASSIGN_OR_RETURN(options.groups, ReadGroups(prefix));
  ProgressBar progress("bytes read", 0);
  uint64_t bytes_read = 0;
  options.progress = [&](uint64_t bytes) { progress.Update(bytes_read += bytes); };
  return ReadEtGraph(FileSystem::Posix(), files, options);
}

// One bar after the other.
class StageProgress {
 public:
  void Update(absl::string_view stage, uint64_t done, uint64_t total) {
    if (bar_ == nullptr || stage != stage_ || total != total_) {
      bar_ = nullptr;
      bar_ = std::make_unique<ProgressBar>(std::string(stage), total);
      stage_ = std::string(stage);
      total_ = total;
    }
    bar_->Update(done);
  }

 private:
  std::unique_ptr<ProgressBar> bar_;
  std::string stage_;
  uint64_t total_ = 0;
};

std::optional<ReplayResources> ReplayResourcesFromName(absl::string_view name) {
  if (name == "streams") return ReplayResources::kPerResource;
  if (name == "simulator") return ReplayResources::kSimulator;
  return std::nullopt;
}

absl::StatusOr<IterationOptions> ReadIterationOptions(TimingMode mode) {
  IterationOptions options;
  options.mode = mode;
  RETURN_IF_ERROR(ApplyNameFlag("partition", absl::GetFlag(FLAGS_partition),
                                TrafficSnapshotPartitionFromName, "none, fabric, kind, link_domain",
                                &options.partition));
  RETURN_IF_ERROR(ApplyNameFlag("resources", absl::GetFlag(FLAGS_resources),
                                ReplayResourcesFromName, "streams, simulator", &options.resources));
  const int64_t kib = absl::GetFlag(FLAGS_coalesce_below_kib);
  if (kib < 0 || kib > kMaxCoalescedKib) {
    return WrongFlag("coalesce_below_kib", absl::StrCat(kib),
                     absl::StrCat("0 to ", kMaxCoalescedKib));
  }
  options.coalesce_below_bytes = kib << 10;
  const int32_t threads = absl::GetFlag(FLAGS_threads);
  if (threads < 0 || threads > kMaxThreads) {
    return WrongFlag("threads", absl::StrCat(threads), absl::StrCat("0 to ", kMaxThreads));
  }
  options.threads = threads == 0 ? MachineThreads() : threads;
  if (mode != TimingMode::kSnapshot && !absl::GetFlag(FLAGS_manifest).empty()) {
    return absl::InvalidArgumentError("--manifest lists snapshots, which only --mode=snapshot has");
  }
  return options;
}

absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictWithProgress(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    IterationOptions options) {
  StageProgress progress;
  options.progress = [&](absl::string_view stage, uint64_t done, uint64_t total) {
    progress.Update(stage, done, total);
  };
  return PredictIteration(setup, graph, match, options);
}

// Neither of the traces nor of the other inputs is overwritten.
absl::Status CheckManifestPath(const std::string& prefix, const std::string& manifest) {
  if (manifest.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   FileSystem::Posix().Glob(absl::StrCat(prefix, ".*")));
  for (const std::string& input :
       {absl::GetFlag(FLAGS_config), absl::GetFlag(FLAGS_network), absl::GetFlag(FLAGS_system),
        absl::GetFlag(FLAGS_comm_groups), absl::GetFlag(FLAGS_corrections)}) {
    inputs.push_back(UserPath(input));
  }
  return CheckOutputPaths(inputs, {manifest});
}

absl::Status WriteManifest(const SnapshotManifest& manifest, const std::string& path) {
  const bool binary = absl::EndsWith(absl::StripSuffix(path, ".gz"), ".pb");
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.Write("manifest", path, [&](ByteSink& sink) {
    return sink.Append(binary ? manifest.SerializeAsString() : ReportToJson(manifest));
  }));
  return outputs.Commit();
}

absl::StatusOr<PredictionReport> PredictWorkload() {
  const std::string prefix = UserPath(absl::GetFlag(FLAGS_et));
  const std::string manifest_path = UserPath(absl::GetFlag(FLAGS_manifest));
  ASSIGN_OR_RETURN(TimingConfig config, ReadConfig());
  // Formulas know nothing of what runs at once.
  if (absl::GetFlag(FLAGS_config).empty() && absl::GetFlag(FLAGS_engine).empty()) {
    config.model = TimingModel::kEmbedded;
  }
  ASSIGN_OR_RETURN(const IterationOptions options, ReadIterationOptions(config.mode));
  RETURN_IF_ERROR(CheckManifestPath(prefix, manifest_path));
  ASSIGN_OR_RETURN(const TimingSetup setup,
                   SetUpTiming(FileSystem::Posix(), config, MachineEnvironment()));
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadWorkload(prefix));
  const CommunicationMatch match(graph);
  const absl::StatusOr<std::unique_ptr<IterationPrediction>> prediction =
      PredictWithProgress(setup, graph, match, options);
  if (!prediction.ok()) return Annotate(prediction.status(), prefix);
  if (!manifest_path.empty()) {
    RETURN_IF_ERROR(WriteManifest(
        MakeSnapshotManifest(**prediction, options, setup.timing->engine(), graph), manifest_path));
  }
  return MakeIterationReport(**prediction, options, setup, graph, match);
}

// Flags that mean something for a workload only.
absl::Status CheckListFlags() {
  for (const auto& [flag, given] : std::vector<std::pair<absl::string_view, bool>>{
           {"comm_groups", !absl::GetFlag(FLAGS_comm_groups).empty()},
           {"partition", absl::GetFlag(FLAGS_partition) != "none"},
           {"coalesce_below_kib", absl::GetFlag(FLAGS_coalesce_below_kib) != 0},
           {"resources", absl::GetFlag(FLAGS_resources) != "streams"},
           {"threads", absl::GetFlag(FLAGS_threads) != 0},
           {"manifest", !absl::GetFlag(FLAGS_manifest).empty()}}) {
    if (given) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " is for workloads, --et; all edges of a list start at once"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Predict() {
  const bool has_et = !absl::GetFlag(FLAGS_et).empty();
  const bool has_edges = !absl::GetFlag(FLAGS_edges).empty();
  if (has_et == has_edges) {
    return absl::InvalidArgumentError(
        "give either a workload or a list of edges, e.g. --et=run/llama --network=network.yml or "
        "--edges=edges.jsonl --network=network.yml");
  }
  if (has_edges) RETURN_IF_ERROR(CheckListFlags());
  ASSIGN_OR_RETURN(const PredictionReport report, has_et ? PredictWorkload() : PredictList());
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "astra_predict: warning: %s\n", Printable(warning).c_str());
  }
  if (report.fallbacks() > 0) {
    std::fprintf(stderr, "astra_predict: warning: %s did not time all: %s\n",
                 report.engine().c_str(), Printable(report.fallback_details(0).reason()).c_str());
  }
  const std::string text = has_et ? FormatIteration(report) : FormatPrediction(report);
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : text));
  return kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"astra_predict",
       "Predicts how long a workload takes on a network, with communication alone or with all that "
       "runs at once, by formulas, by simulation in process, or by the user's AstraSim; or how "
       "long the edges of a list take.",
       {"astra_predict --et=run/llama --network=network.yml --system=system.json --mode=snapshot "
        "--manifest=snapshots.json",
        "astra_predict --edges=edges.jsonl --network=network.yml",
        "astra_predict --edges=edges.jsonl --network=network.yml --system=system.json "
        "--engine=embedded --mode=snapshot --cache=readwrite --json",
        "astra_predict --edges=edges.jsonl --config=timing.yml"},
       {"et", "comm_groups", "edges", "config", "network", "system", "engine", "mode", "partition",
        "coalesce_below_kib", "resources", "threads", "manifest", "congestion", "astra_binary",
        "astra_timeout_s", "corrections", "cache", "cache_dir"}},
      argc, argv, meridian::Predict);
}
