// SPDX-License-Identifier: Apache-2.0
// The network: AstraSim's network configuration, one list entry per dimension.
//
//   topology: [ Ring, Switch ]    # also FullyConnected, Mesh, and Torus for Ring
//   npus_count: [ 4, 8 ]
//   bandwidth: [ 50.0, 25.0 ]     # GB/s per link and direction
//   latency: [ 500, 2000 ]        # ns per link
//   bandwidth_unit: GiB           # optional: GiB (2^30 bytes, as in AstraSim) or GB (1e9)
//
// Rank = d0 + 4 * d1: the first dimension varies fastest.
#ifndef ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_
#define ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// The NPUs that differ in one coordinate only form one block of this shape. Several dimensions of
// rings are a torus, several of meshes a grid.
enum class BlockShape : uint8_t {
  // Links both ways between neighbours, and around the ends.
  kRing,
  // A link from each NPU to each other.
  kFullyConnected,
  // A link up to a switch and one down from it for each NPU.
  kSwitch,
  // Links both ways between neighbours, none around the ends.
  kMesh,
};

// Returns the shape's name in the configuration, e.g. "FullyConnected".
absl::string_view BlockShapeName(BlockShape shape);

// What messages do to each other.
enum class Congestion : uint8_t {
  // They share links: each goes from link to link, one at a time on each.
  kAware,
  // They never slow each other down.
  kUnaware,
};

struct NetworkDimension {
  BlockShape shape = BlockShape::kRing;
  int32_t npus = 2;
  // Bandwidth of one link in one direction.
  double bytes_per_ns = 1;
  // Latency of one link.
  double latency_ns = 0;
};

struct NetworkConfig {
  // Where this came from, for messages; may be empty.
  std::string source;
  std::vector<NetworkDimension> dimensions;
  // The keys of the file that mean nothing here, in file order.
  std::vector<std::string> unknown_keys;

  // Returns the number of NPUs of all dimensions together; the configuration must be valid.
  int32_t npus() const;
};

inline constexpr int32_t kMaxNpus = 1 << 20;

// Converts AstraSim's GB/s, which are 2^30 bytes per second.
double GibibytesPerSecondToBytesPerNs(double gibibytes_per_second);

// Returns InvalidArgument, naming source and key, unless all values are such that a simulation can
// run: 2 to kMaxNpus NPUs in all and at least 2 in each dimension, positive bandwidth, latency from
// 0 on, and neither so extreme that times would not fit into 64 bits.
absl::Status CheckNetworkConfig(const NetworkConfig& network);

// Parses the YAML text. Keys that are not known are ignored, as AstraSim does, and listed. Errors
// name the source and the key.
absl::StatusOr<NetworkConfig> ParseNetworkConfig(absl::string_view yaml, absl::string_view source);

// Returns a warning that names the first unknown key; empty when there is none.
std::string UnknownKeysWarning(const NetworkConfig& network);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_
