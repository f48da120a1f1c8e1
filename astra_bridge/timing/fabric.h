// SPDX-License-Identifier: Apache-2.0
// A fabric: a network together with the way in which collectives are carried out on it, which is
// all that an engine needs to know besides the comm edges. A job may have several, by topology key.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_H_

#include <map>
#include <string>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct Fabric {
  NetworkConfig network;
  SystemConfig system;
  // A ContentHash of all files that the fabric was made from. Equal hashes mean equal times.
  absl::uint128 content_hash = 0;
};

// Returns "congestion-aware", "congestion-unaware" or "fairly shared", as in the names of engines.
absl::string_view CongestionName(Congestion congestion);

struct FabricFiles {
  // Path of the network configuration.
  std::string network;
  // Path of the system configuration; empty: DefaultSystemConfig is used.
  std::string system = {};
  // Path of a calibrated network that links of the network may be multiples of; empty: none.
  std::string calibrated_network = {};
};

// Returns what to assume where no system configuration is given: one chunk, 10 ns of endpoint
// delay, reductions that cost nothing, and in each dimension the algorithm that suits its shape:
// ring on rings and meshes, direct where all NPUs are one or two links apart. On networks of links it
// is what NCCL runs: rings in the order of ranks, but all-to-all direct.
SystemConfig DefaultSystemConfig(const NetworkConfig& network);

// Reads the files, plain or gzip. Errors name the file and the key. `with_computation` keeps what the
// system says of it: roofline and replay-only.
absl::StatusOr<Fabric> ReadFabric(FileSystem& file_system, const FabricFiles& files,
                                  bool with_computation = false);

// The topology key of edges that name none.
inline constexpr absl::string_view kDefaultTopologyKey = "default";

// The fabrics of a job by topology key, as comm edges name them.
class FabricSet {
 public:
  // Returns a set of one fabric that carries all edges, whatever their key.
  static FabricSet ForAllEdges(Fabric fabric) { return FabricSet({{"", std::move(fabric)}}); }

  // There is at least one fabric; one with an empty key carries all edges.
  explicit FabricSet(std::map<std::string, Fabric> by_key);

  // Returns the fabric of the key, which lives as long as this set. InvalidArgument that lists the
  // keys when there is none. Edges without a key use the one fabric, or that of
  // kDefaultTopologyKey.
  absl::StatusOr<const Fabric*> Find(absl::string_view topology_key) const;

 private:
  std::map<std::string, Fabric> by_key_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_H_
