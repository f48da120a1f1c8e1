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
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr char kCacheFile[] = "timing.sqlite";

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
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<TimingCache>> {
    if (mode == CacheMode::kReadWrite) RETURN_IF_ERROR(file_system.CreateDirectories(folder));
    return TimingCache::Open(absl::StrCat(folder, "/", kCacheFile), mode);
  };
  absl::StatusOr<std::unique_ptr<TimingCache>> cache = open();
  if (!cache.ok()) {
    return absl::Status(cache.status().code(),
                        absl::StrCat(cache.status().message(),
                                     "; use another --cache_dir for the cache, or --cache=off"));
  }
  return std::shared_ptr<TimingCache>(*std::move(cache));
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

absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config,
                                        const TimingEnvironment& environment) {
  TimingSetup setup;
  setup.layout = config.layout;
  ASSIGN_OR_RETURN(setup.fabrics, ReadFabrics(file_system, config, &setup.warnings));
  ASSIGN_OR_RETURN(setup.cache, OpenCache(file_system, config, environment));
  ASSIGN_OR_RETURN(setup.timing, MakeEngine(file_system, config, environment, &setup));
  if (!config.corrections.empty()) {
    ASSIGN_OR_RETURN(Corrections corrections, ReadCorrections(file_system, config.corrections));
    setup.timing = std::make_unique<CorrectedTiming>(
        std::move(setup.timing), std::move(corrections),
        environment.ranks > 0 ? environment.ranks : setup.fabrics->MostNpus());
  }
  return setup;
}

}  // namespace meridian
