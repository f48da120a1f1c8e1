// How long one message takes that has the network to itself.
#ifndef ASTRA_BRIDGE_TIMING_MESSAGE_DELAY_H_
#define ASTRA_BRIDGE_TIMING_MESSAGE_DELAY_H_

#include <cstdint>

#include "astra_bridge/engine/network_config.h"

namespace meridian {

// Returns the links on the shortest way between two coordinates of a dimension: rings go the
// shorter way round, a switch is two links away from everybody.
int32_t HopsBetween(const NetworkDimension& dimension, int32_t from, int32_t to);

// Returns hops * latency + bytes / bandwidth of the lowest dimension in which the two devices
// differ, which is all that AstraSim charges. 0 for a device and itself.
double MessageDelayNs(const NetworkConfig& network, int32_t from, int32_t to, double bytes);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_MESSAGE_DELAY_H_
