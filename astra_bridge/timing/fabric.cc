#include "astra_bridge/timing/fabric.h"

#include "absl/strings/str_join.h"
#include "astra_bridge/engine/links_config.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
absl::string_view CongestionName(Congestion congestion) {
  constexpr absl::string_view kNames[] = {"congestion-aware", "congestion-unaware",
                                          "fairly shared"};
  return kNames[static_cast<size_t>(congestion)];
}

SystemConfig DefaultSystemConfig(const NetworkConfig& network) {
  SystemConfig system;
  system.source = "the default system configuration";
  for (const NetworkDimension& dimension : network.dimensions) {
    const bool is_ring = dimension.shape == BlockShape::kRing ||
                         dimension.shape == BlockShape::kMesh ||
                         dimension.shape == BlockShape::kLinks;
    CollectiveAlgorithm algorithm;
    algorithm.kind =
        is_ring ? CollectiveAlgorithm::Kind::kRing : CollectiveAlgorithm::Kind::kDirect;
    for (std::vector<CollectiveAlgorithm>& algorithms : system.algorithms) {
      algorithms.push_back(algorithm);
    }
  }
  if (network.has_links()) {
    for (CollectiveAlgorithm& algorithm :
         system.algorithms[static_cast<size_t>(CollectiveKind::kAllToAll)]) {
      algorithm.kind = CollectiveAlgorithm::Kind::kDirect;
    }
  }
  return system;
}

absl::StatusOr<Fabric> ReadFabric(FileSystem& file_system, const FabricFiles& files,
                                  bool with_computation) {
  Fabric fabric;
  ContentHash hash;
  ASSIGN_OR_RETURN(const InputFile network, InputFile::Open(file_system, files.network));
  hash.AddText(network.bytes());
  ASSIGN_OR_RETURN(fabric.network, ParseNetworkConfig(network.bytes(), files.network));
  if (fabric.network.has_links() && !files.calibrated_network.empty()) {
    ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, files.calibrated_network));
    hash.AddText(file.bytes());
    ASSIGN_OR_RETURN(const NetworkConfig calibrated,
                     ParseNetworkConfig(file.bytes(), files.calibrated_network));
    RETURN_IF_ERROR(ResolveLinks(calibrated, &fabric.network));
  }
  if (files.system.empty()) {
    fabric.system = DefaultSystemConfig(fabric.network);
  } else {
    ASSIGN_OR_RETURN(const InputFile system, InputFile::Open(file_system, files.system));
    hash.AddText(system.bytes());
    ASSIGN_OR_RETURN(fabric.system, ParseSystemConfig(system.bytes(), files.system));
    if (fabric.system.replay_only && !with_computation) {
      return InvalidArgument(
          files.system, ": replay-only: set it to 0; communication is to be timed, not replayed");
    }
    for (size_t op = 0; op < kSimulatedCollectives && !with_computation; ++op) {
      if (fabric.system.custom[op].empty()) continue;
      return InvalidArgument(files.system, ": ", CustomKey(static_cast<CollectiveKind>(op)),
                             ": only astra_simulate runs custom collectives");
    }
    fabric.system.roofline_enabled &= with_computation;
  }
  fabric.content_hash = hash.value();
  return fabric;
}

FabricSet::FabricSet(std::map<std::string, Fabric> by_key) : by_key_(std::move(by_key)) {
  MERIDIAN_CHECK(!by_key_.empty());
}

absl::StatusOr<const Fabric*> FabricSet::Find(absl::string_view topology_key) const {
  // An empty key comes first.
  if (by_key_.begin()->first.empty() || (topology_key.empty() && by_key_.size() == 1)) {
    return &by_key_.begin()->second;
  }
  const auto fabric =
      by_key_.find(std::string(topology_key.empty() ? kDefaultTopologyKey : topology_key));
  if (fabric != by_key_.end()) return &fabric->second;
  const std::string keys = absl::StrJoin(
      by_key_, ", ", [](std::string* out, const auto& entry) { *out += entry.first; });
  if (topology_key.empty()) {
    return InvalidArgument("no topology_key, and no topology is called ", kDefaultTopologyKey,
                           "; there are ", keys);
  }
  return InvalidArgument("topology_key ", Printable(topology_key), " names no topology; there are ",
                         keys);
}

}  // namespace meridian
