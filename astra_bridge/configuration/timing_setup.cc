#include "astra_bridge/configuration/timing_setup.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_sim_timing.h"
#include "astra_bridge/timing/embedded_timing.h"
#include "xla_profiler/base/command_line/user_paths.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

absl::StatusOr<std::shared_ptr<const FabricSet>> ReadFabrics(FileSystem& file_system,
                                                             const TimingConfig& config,
                                                             std::vector<std::string>* warnings) {
  if (config.topologies.empty()) {
    return InvalidArgument(
        "no network is given; use --network=F.yml, or topologies in the file of --config");
  }
  std::map<std::string, Fabric> fabrics;
  for (const auto& [key, files] : config.topologies) {
    ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(file_system, files));
    const std::string warning = UnknownKeysWarning(fabric.network);
    if (!warning.empty()) warnings->push_back(warning);
    fabrics.emplace(key, std::move(fabric));
  }
  return std::make_shared<FabricSet>(std::move(fabrics));
}

absl::StatusOr<std::unique_ptr<NetworkTiming>> MakeEngine(FileSystem& file_system,
                                                          const TimingConfig& config,
                                                          const TimingEnvironment& environment,
                                                          TimingSetup* setup) {
  std::unique_ptr<NetworkTiming> embedded =
      std::make_unique<EmbeddedTiming>(setup->fabrics, setup->congestion, setup->cache);
  if (config.model != TimingModel::kAstra) return embedded;
  const absl::StatusOr<std::string> path =
      FindAstraBinary(file_system, config.astra_binary, environment.search_path, config.congestion);
  if (!path.ok() && !environment.require_astra) {
    setup->warnings.push_back(absl::StrCat(
        path.status().message(), "; the embedded engine, which gives the same times, is used"));
    return embedded;
  }
  RETURN_IF_ERROR(path.status());
  AstraSimulatorOptions options;
  options.binary = *path;
  options.work_folder = environment.work_folder;
  options.timeout = config.astra_timeout;
  ASSIGN_OR_RETURN(const AstraBinary binary,
                   ProbeAstraBinary(file_system, options, config.congestion));
  return std::make_unique<FallbackTiming>(
      std::make_unique<AstraSimTiming>(file_system, setup->fabrics, binary, options, setup->cache),
      std::move(embedded));
}

}  // namespace

TimingEnvironment MachineEnvironment(bool require_astra) {
  TimingEnvironment environment;
  environment.search_path = EnvironmentVariable("PATH");
  environment.work_folder = UserInputOptions().temporary_directory;
  environment.require_astra = require_astra;
  return environment;
}

absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config,
                                        const TimingEnvironment& environment) {
  if (config.model == TimingModel::kAstra && config.mode == TimingMode::kSnapshot) {
    return InvalidArgument(
        "AstraSim times edges one by one, and --mode=snapshot all together; use --engine=embedded, "
        "or --mode=isolated");
  }
  TimingSetup setup;
  setup.layout = config.layout;
  setup.congestion =
      config.model == TimingModel::kAnalytical ? Congestion::kUnaware : config.congestion;
  ASSIGN_OR_RETURN(setup.fabrics, ReadFabrics(file_system, config, &setup.warnings));
  if (!config.cache_folder.empty()) {
    RETURN_IF_ERROR(file_system.CreateDirectories(config.cache_folder));
    setup.cache = std::make_shared<TimingCache>(file_system, config.cache_folder);
  }
  ASSIGN_OR_RETURN(setup.timing, MakeEngine(file_system, config, environment, &setup));
  if (!config.corrections.empty()) {
    ASSIGN_OR_RETURN(Corrections corrections, ReadCorrections(file_system, config.corrections));
    for (const auto& [key, files] : config.topologies) {
      ASSIGN_OR_RETURN(const Fabric* fabric, setup.fabrics->Find(key));
      if (files.calibrated_network.empty() || !fabric->network.has_links()) continue;
      corrections = corrections.OnlyOverhead();
    }
    setup.overhead_ns = corrections.overhead_ns;
    setup.timing =
        std::make_unique<CorrectedTiming>(std::move(setup.timing), std::move(corrections));
  }
  return setup;
}

}  // namespace meridian
