// astra_predict: how long communication takes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/comm_edge_list.h"
#include "astra_bridge/edge_prediction.h"
#include "astra_bridge/timing_config.h"
#include "astra_bridge/timing_setup.h"
#include "tools/command.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/progress_bar.h"
#include "xla_profiler/util/report_json.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"
#include "xla_profiler/util/text_table.h"

ABSL_FLAG(std::string, edges, "", "The communication: a list of edges, JSONL.");
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
          "model, or analytical.");
ABSL_FLAG(std::string, mode, "",
          "isolated: every edge alone; snapshot: all at once. Default: the configuration's, or "
          "isolated.");
ABSL_FLAG(std::string, congestion, "",
          "aware: messages share links; unaware: they never slow each other down. Default: the "
          "configuration's, or aware.");
ABSL_FLAG(std::string, astra_binary, "",
          "With --engine=sidecar: the AstraSim program. Default: found on PATH.");
ABSL_FLAG(double, astra_timeout_s, 0,
          "With --engine=sidecar: how long a run of it may take. Default: the configuration's, or "
          "600.");
ABSL_FLAG(std::string, corrections, "", "Corrections of a calibration: JSON.");
ABSL_FLAG(std::string, cache, "",
          "off, readonly or readwrite: keep simulated times for the next run. Default: off, or "
          "readwrite when a folder for it is given.");
ABSL_FLAG(std::string, cache_dir, "", "Folder of the cache. Default: meridian in the user's own.");

namespace meridian {
namespace {

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
    config.topologies[""].files.network = UserPath(network);
  }
  for (auto& [key, topology] : config.topologies) {
    ApplyPathFlag(absl::GetFlag(FLAGS_system), &topology.files.system);
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
absl::StatusOr<PredictionReport> PredictWithProgress(const TimingSetup& setup, CommEdgeList list,
                                                     TimingMode mode) {
  ProgressBar progress("timing edges", list.edges.size());
  return PredictEdges(setup, std::move(list), mode, [&](uint64_t done) { progress.Update(done); });
}

absl::StatusOr<int> Predict() {
  const std::string edges = absl::GetFlag(FLAGS_edges);
  if (edges.empty()) {
    return absl::InvalidArgumentError(
        "--edges names no file; expected e.g. --edges=edges.jsonl --network=network.yml");
  }
  ASSIGN_OR_RETURN(const TimingConfig config, ReadConfig());
  ASSIGN_OR_RETURN(CommEdgeList list,
                   ReadCommEdges(FileSystem::Posix(), UserPath(edges), UserInputOptions()));
  ASSIGN_OR_RETURN(const TimingSetup setup,
                   SetUpTiming(FileSystem::Posix(), config, MachineEnvironment()));
  ASSIGN_OR_RETURN(const PredictionReport report,
                   PredictWithProgress(setup, std::move(list), config.mode));
  for (const std::string& warning : report.warnings()) {
    std::fprintf(stderr, "astra_predict: warning: %s\n", Printable(warning).c_str());
  }
  if (report.fallbacks() > 0) {
    std::fprintf(stderr, "astra_predict: warning: %s did not time all: %s\n",
                 report.engine().c_str(), Printable(report.fallback_details(0).reason()).c_str());
  }
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : FormatPrediction(report)));
  return kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"astra_predict",
       "Predicts how long communication takes: each edge of a list alone on its network, or all at "
       "once, by formulas, by simulation in process, or by the user's AstraSim.",
       {"astra_predict --edges=edges.jsonl --network=network.yml",
        "astra_predict --edges=edges.jsonl --network=network.yml --system=system.json "
        "--engine=embedded --mode=snapshot --cache=readwrite --json",
        "astra_predict --edges=edges.jsonl --config=timing.yml"},
       {"edges", "config", "network", "system", "engine", "mode", "congestion", "astra_binary",
        "astra_timeout_s", "corrections", "cache", "cache_dir"}},
      argc, argv, meridian::Predict);
}
