#include "astra_bridge/engine/topology.h"

#include <algorithm>
#include <cstdlib>

namespace meridian {

int32_t HopsBetween(const NetworkDimension& block, int32_t from, int32_t to) {
  const int32_t distance = std::abs(to - from);
  if (distance == 0) return 0;
  switch (block.shape) {
    case BlockShape::kRing:
      return std::min(distance, block.npus - distance);
    case BlockShape::kFullyConnected:
      return 1;
    case BlockShape::kSwitch:
      return 2;
    case BlockShape::kMesh:
    case BlockShape::kLinks:
      break;
  }
  return distance;
}

Topology::Topology(const NetworkConfig& network) : network_(network) {
  for (const NetworkDimension& dimension : dimensions()) {
    strides_.push_back(npus_);
    npus_ *= dimension.npus;
  }
  coordinates_.reserve(static_cast<size_t>(npus_) * dimensions().size());
  for (int32_t rank = 0; rank < npus_; ++rank) {
    for (size_t d = 0; d < dimensions().size(); ++d) {
      coordinates_.push_back(rank / strides_[d] % dimensions()[d].npus);
    }
  }
}

int32_t Topology::FirstDifference(int32_t a, int32_t b) const {
  int32_t dimension = 0;
  while (Coordinate(a, dimension) == Coordinate(b, dimension)) ++dimension;
  return dimension;
}

int32_t Topology::Direction(int32_t dimension, int32_t from_coordinate,
                            int32_t to_coordinate) const {
  const NetworkDimension& block = dimensions()[dimension];
  if (block.shape == BlockShape::kMesh) return to_coordinate > from_coordinate ? 1 : -1;
  const int32_t distance = to_coordinate - from_coordinate;
  const int32_t up = distance < 0 ? distance + block.npus : distance;
  return block.npus - up < up ? -1 : 1;
}

std::optional<int32_t> CommonDimension(const Topology& topology, absl::Span<const int32_t> ranks) {
  std::optional<int32_t> common;
  for (const int32_t rank : ranks) {
    for (int32_t d = 0; d < topology.dimension_count(); ++d) {
      if (topology.Coordinate(rank, d) == topology.Coordinate(ranks[0], d)) continue;
      if (common.has_value() && *common != d) return std::nullopt;
      common = d;
    }
  }
  return common;
}

}  // namespace meridian
