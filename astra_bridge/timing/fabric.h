// A network together with the way in which collectives are carried out on it: what an engine needs
// to know besides the edges.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

struct Fabric {
  NetworkConfig network;
  SystemConfig system;
  // Of all that the fabric was made from. Equal hashes, equal times.
  uint64_t content_hash = 0;
};

// "congestion-aware" or "congestion-unaware", as in the names of engines.
absl::string_view CongestionName(Congestion congestion);

// Algorithms that replace those of the system configuration.
struct CollectiveChoice {
  std::vector<CollectiveAlgorithm> algorithms;
  // The one algorithm is for each dimension of the network, however many there are.
  bool in_every_dimension = false;
};
using CollectiveChoices = std::map<CollectiveKind, CollectiveChoice>;

struct FabricFiles {
  std::string network;
  // Empty: DefaultSystemConfig.
  std::string system;
};

// Returns what to assume where no system configuration is given: one chunk, 10 ns of endpoint
// delay, reductions that cost nothing, and in each dimension the algorithm that suits its shape:
// ring on rings and meshes, direct where all NPUs are one or two links apart.
SystemConfig DefaultSystemConfig(const NetworkConfig& network);

// Reads the files, plain or gzip, and applies the choices. Errors name the file and the key.
absl::StatusOr<Fabric> ReadFabric(FileSystem& file_system, const FabricFiles& files,
                                  const CollectiveChoices& choices = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_H_
