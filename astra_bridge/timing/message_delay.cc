#include "astra_bridge/timing/message_delay.h"

#include <algorithm>
#include <cstdlib>

namespace meridian {

int32_t HopsBetween(const NetworkDimension& dimension, int32_t from, int32_t to) {
  const int32_t distance = std::abs(from - to);
  if (distance == 0) return 0;
  switch (dimension.shape) {
    case BlockShape::kRing:
      return std::min(distance, dimension.npus - distance);
    case BlockShape::kFullyConnected:
      return 1;
    case BlockShape::kSwitch:
      return 2;
    case BlockShape::kMesh:
      return distance;
  }
  return distance;
}

double MessageDelayNs(const NetworkConfig& network, int32_t from, int32_t to, double bytes) {
  for (const NetworkDimension& dimension : network.dimensions) {
    const int32_t hops = HopsBetween(dimension, from % dimension.npus, to % dimension.npus);
    if (hops > 0) return hops * dimension.latency_ns + bytes / dimension.bytes_per_ns;
    from /= dimension.npus;
    to /= dimension.npus;
  }
  return 0;
}

}  // namespace meridian
