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
//
// Or a network of links between NPUs 0 .. n - 1 and switches, which have names:
//
//   topology: [ Links ]
//   npus_count: [ 8 ]
//   links:
//     - { between: [ 0, leaf0 ], bandwidth: 12.5, latency: 500 }
//     - { between: [ leaf0, leaf1 ], bandwidth: 2x }   # twice a calibrated link's
//
// links_config.h says what else `links` may be; infra_graph.h reads another form of such files.
#ifndef ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_
#define ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_

#include <cstddef>
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
  // No block: NetworkConfig::links say how NPUs are joined.
  kLinks,
};

// Returns the shape's name in the configuration, e.g. "FullyConnected".
absl::string_view BlockShapeName(BlockShape shape);

// What messages do to each other.
enum class Congestion : uint8_t {
  // They share links: each goes from link to link, one at a time on each.
  kAware,
  // They never slow each other down.
  kUnaware,
  // They share links max-min fairly: the network, whatever its topology, is one of links.
  kFair,
};

struct NetworkDimension {
  BlockShape shape = BlockShape::kRing;
  int32_t npus = 2;
  // Bandwidth of one link in one direction.
  double bytes_per_ns = 1;
  // Latency of one link.
  double latency_ns = 0;
};

// A link of a network of links; each direction has all of its bandwidth.
struct NetworkLink {
  // The devices that it joins: NPUs, then switches (NetworkConfig::switches).
  int32_t ends[2] = {0, 0};
  double bytes_per_ns = 0;
  double latency_ns = 0;
  // Multiples of a calibrated link's. Not 0: the value above is not known yet (ResolveLinks).
  double bandwidth_factor = 0;
  double latency_factor = 0;
  // Line of the file that it comes from; 0: none.
  int32_t line = 0;
};

struct NetworkConfig {
  // Where this came from, for messages; may be empty.
  std::string source;
  // Of a network of links: all of them kLinks, for hierarchical collectives; usually one.
  std::vector<NetworkDimension> dimensions;
  std::vector<NetworkLink> links;
  // Names of switches; the first is device npus().
  std::vector<std::string> switches;
  // A note on keys of the file that mean nothing here; empty when there are none.
  std::string unknown_keys;

  bool has_links() const { return !links.empty(); }
  // Returns the number of NPUs of all dimensions together; the configuration must be valid.
  int32_t npus() const;
  // Returns how messages call a device: "3", or the name of a switch.
  std::string DeviceName(int32_t device) const;
};

inline constexpr int32_t kMaxNpus = 1 << 20;
inline constexpr size_t kMaxLinks = size_t{1} << 20;

// Bounds within which the longest message of a simulation takes less than 2^60 ns.
inline constexpr double kMinBytesPerNs = 1.0 / 1024;
inline constexpr double kMaxBytesPerNs = 1e12;
inline constexpr double kMaxLatencyNs = 1e12;

// Converts AstraSim's GB/s, which are 2^30 bytes per second.
double GibibytesPerSecondToBytesPerNs(double gibibytes_per_second);

// Returns what is wrong with the bandwidth and latency of a link; empty when nothing is.
std::string RateFault(double bytes_per_ns, double latency_ns);

// Returns InvalidArgument, naming source and key, unless all values are such that a simulation can
// run: 2 to kMaxNpus NPUs in all and at least 2 in each dimension, positive bandwidth, latency from
// 0 on, and neither so extreme that times would not fit into 64 bits; links as in CheckLinks, and
// none of them a multiple any more.
absl::Status CheckNetworkConfig(const NetworkConfig& network);

// Parses the YAML text, or an InfraGraph. Keys that are not known are ignored, as AstraSim does, and
// noted. Errors name the source and the key; those of links the line, too.
absl::StatusOr<NetworkConfig> ParseNetworkConfig(absl::string_view yaml, absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_NETWORK_CONFIG_H_
