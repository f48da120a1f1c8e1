#include "astra_bridge/configuration/timing_setup.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_sim_timing.h"
#include "astra_bridge/timing/analytical_timing.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "xla_profiler/base/command_line/user_paths.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr char kCacheFolder[] = "timing";

absl::StatusOr<std::shared_ptr<const FabricSet>> ReadFabrics(FileSystem& file_system,
                                                             const TimingConfig& config,
                                                             std::vector<std::string>* warnings) {
  if (config.topologies.empty()) {
    return absl::InvalidArgumentError(
        "no network is given; use --network=F.yml, or topologies in the file of --config");
  }
  std::map<std::string, Fabric> fabrics;
  for (const auto& [key, files] : config.topologies) {
    ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(file_system, files, config.collectives));
    const std::string warning = UnknownKeysWarning(fabric.network);
    if (!warning.empty()) warnings->push_back(warning);
    fabrics.emplace(key, std::move(fabric));
  }
  return std::make_shared<FabricSet>(std::move(fabrics));
}

// The analytical model is faster than any cache.
absl::StatusOr<std::shared_ptr<TimingCache>> OpenCache(FileSystem& file_system,
                                                       const TimingConfig& config,
                                                       const TimingEnvironment& environment) {
  const CacheMode unless_told =
      config.cache_folder.empty() ? CacheMode::kOff : CacheMode::kReadWrite;
  const CacheMode mode = config.cache.value_or(unless_told);
  if (mode == CacheMode::kOff || config.model == TimingModel::kAnalytical) return nullptr;
  const std::string folder =
      config.cache_folder.empty() ? environment.cache_folder : config.cache_folder;
  if (folder.empty()) {
    return absl::InvalidArgumentError(
        "there is no folder for the cache; use --cache_dir, or folders.cache in the file of "
        "--config");
  }
  const std::string times = absl::StrCat(folder, "/", kCacheFolder);
  const absl::Status made =
      mode == CacheMode::kReadWrite ? file_system.CreateDirectories(times) : absl::OkStatus();
  if (!made.ok()) {
    return absl::Status(
        made.code(),
        absl::StrCat(made.message(), "; use another --cache_dir for the cache, or --cache=off"));
  }
  return std::make_shared<TimingCache>(file_system, times, mode);
}

absl::StatusOr<std::unique_ptr<NetworkTiming>> MakeEngine(FileSystem& file_system,
                                                          const TimingConfig& config,
                                                          const TimingEnvironment& environment,
                                                          TimingSetup* setup) {
  switch (config.model) {
    case TimingModel::kAnalytical:
      return std::make_unique<AnalyticalTiming>(setup->fabrics);
    case TimingModel::kEmbedded:
      return std::make_unique<EmbeddedTiming>(setup->fabrics, config.congestion, setup->cache);
    case TimingModel::kAstra:
      break;
  }
  const absl::StatusOr<std::string> path =
      FindAstraBinary(file_system, config.astra_binary, environment.search_path, config.congestion);
  if (!path.ok() && !environment.require_astra) {
    setup->warnings.push_back(absl::StrCat(
        path.status().message(), "; the embedded engine, which gives the same times, is used"));
    return std::make_unique<EmbeddedTiming>(setup->fabrics, config.congestion, setup->cache);
  }
  RETURN_IF_ERROR(path.status());
  AstraSimulatorOptions options;
  options.binary = *path;
  options.work_folder = config.work_folder.empty() ? environment.work_folder : config.work_folder;
  options.timeout = config.astra_timeout;
  ASSIGN_OR_RETURN(const AstraBinary binary,
                   ProbeAstraBinary(file_system, options, config.congestion));
  return std::make_unique<FallbackTiming>(
      std::make_unique<AstraSimTiming>(file_system, setup->fabrics, binary, options, setup->cache),
      std::make_unique<AnalyticalTiming>(setup->fabrics));
}

}  // namespace

TimingEnvironment MachineEnvironment(bool require_astra) {
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
  environment.require_astra = require_astra;
  return environment;
}

absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config,
                                        const TimingEnvironment& environment) {
  TimingSetup setup;
  setup.layout = config.layout;
  ASSIGN_OR_RETURN(setup.fabrics, ReadFabrics(file_system, config, &setup.warnings));
  ASSIGN_OR_RETURN(setup.cache, OpenCache(file_system, config, environment));
  ASSIGN_OR_RETURN(setup.timing, MakeEngine(file_system, config, environment, &setup));
  if (!config.corrections.empty()) {
    ASSIGN_OR_RETURN(Corrections corrections, ReadCorrections(file_system, config.corrections));
    setup.timing =
        std::make_unique<CorrectedTiming>(std::move(setup.timing), std::move(corrections));
  }
  return setup;
}

}  // namespace meridian
