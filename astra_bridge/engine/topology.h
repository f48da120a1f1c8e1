// SPDX-License-Identifier: Apache-2.0
// Where the ranks are on the network, and how far apart.
//
// A rank's coordinates are the digits of its number, first dimension fastest. The ranks that differ
// in one coordinate only form a block of that dimension:
//
//   npus_count: [ 3, 2 ]      3 --- 4 --- 5       dimension 0: blocks {0,1,2}, {3,4,5}
//                             |     |     |       dimension 1: blocks {0,3}, {1,4}, {2,5}
//                             0 --- 1 --- 2
#ifndef ASTRA_BRIDGE_ENGINE_TOPOLOGY_H_
#define ASTRA_BRIDGE_ENGINE_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"

namespace meridian {

// Returns how many links lie on the shortest way between two coordinates of a block: rings go the
// shorter way round, a switch is two links away from everybody. Not for networks of links.
int32_t HopsBetween(const NetworkDimension& block, int32_t from, int32_t to);

class Topology {
 public:
  // The configuration is valid, as ParseNetworkConfig returns it.
  explicit Topology(const NetworkConfig& network);

  int32_t npus() const { return npus_; }
  const NetworkConfig& network() const { return network_; }
  absl::Span<const NetworkDimension> dimensions() const { return network_.dimensions; }
  int32_t dimension_count() const { return static_cast<int32_t>(dimensions().size()); }
  const NetworkDimension& dimension(int32_t dimension) const { return dimensions()[dimension]; }

  // Returns how much a rank's number grows with its coordinate.
  int32_t stride(int32_t dimension) const { return strides_[dimension]; }

  int32_t Coordinate(int32_t rank, int32_t dimension) const {
    return coordinates_[static_cast<size_t>(rank) * dimensions().size() + dimension];
  }

  // Returns the first dimension in which two different ranks differ.
  int32_t FirstDifference(int32_t a, int32_t b) const;

  // Returns +1 or -1: which way along a ring or mesh is shorter; + when both are equal.
  int32_t Direction(int32_t dimension, int32_t from_coordinate, int32_t to_coordinate) const;

  // Returns HopsBetween in a block of the dimension.
  int32_t Hops(int32_t dimension, int32_t from_coordinate, int32_t to_coordinate) const {
    return HopsBetween(dimensions()[dimension], from_coordinate, to_coordinate);
  }

 private:
  const NetworkConfig network_;
  // How much a rank's number grows with its coordinate, indexed by dimension.
  std::vector<int32_t> strides_;
  int32_t npus_ = 1;
  // The coordinates of rank r begin at r * dimension_count().
  std::vector<int32_t> coordinates_;
};

// Returns the only dimension in which these ranks differ; nullopt when there are several or none.
std::optional<int32_t> CommonDimension(const Topology& topology, absl::Span<const int32_t> ranks);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TOPOLOGY_H_
