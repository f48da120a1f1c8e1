#include "astra_bridge/configuration/timing_setup.h"

#include <map>
#include <utility>

#include "astra_bridge/corrections/corrected_timing.h"
#include "astra_bridge/corrections/corrections.h"
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

}  // namespace

absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config) {
  TimingSetup setup;
  setup.congestion =
      config.model == TimingModel::kAnalytical ? Congestion::kUnaware : config.congestion;
  if (config.model == TimingModel::kAstra) {
    setup.warnings.push_back(
        "model: astra: the embedded engine, which gives the same times, is used");
  }
  ASSIGN_OR_RETURN(setup.fabrics, ReadFabrics(file_system, config, &setup.warnings));
  if (!config.cache_folder.empty()) {
    RETURN_IF_ERROR(file_system.CreateDirectories(config.cache_folder));
    setup.cache = std::make_shared<TimingCache>(file_system, config.cache_folder);
  }
  setup.timing = EmbeddedTiming(setup.fabrics, setup.congestion, setup.cache);
  if (config.corrections.empty()) return setup;
  ASSIGN_OR_RETURN(Corrections corrections, ReadCorrections(file_system, config.corrections));
  for (const auto& [key, files] : config.topologies) {
    ASSIGN_OR_RETURN(const Fabric* fabric, setup.fabrics->Find(key));
    if (files.calibrated_network.empty() || !fabric->network.has_links()) continue;
    corrections = corrections.OnlyOverhead();
  }
  setup.overhead_ns = corrections.overhead_ns;
  setup.timing = CorrectedTiming(std::move(setup.timing), std::move(corrections));
  return setup;
}

}  // namespace meridian
