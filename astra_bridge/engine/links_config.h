// SPDX-License-Identifier: Apache-2.0
// Networks of links (network_config.h), from what a file says of them.
//
// `links` is a list of links, or a shape whose links all have the same bandwidth and latency:
//
//   links: { shape: star }                                   # all NPUs at one switch
//   links: { shape: leaf_spine, leaf: 4, spines: 2, oversubscription: 2 }
//   links: { shape: fat_tree, ports: 4 }                     # of switches with that many ports
//   links: { shape: torus, sizes: [ 4, 4 ] }                 # NPUs joined to their neighbours
//   links: { shape: dragonfly, routers: 4, hosts: 2 }        # routers per group, NPUs per router
//   links: { shape: dragonfly, routers: [ 16, 6 ], ... }     # of a group in rows and columns
//
// each with `bandwidth` and `latency` beside. The links between leaves and spines carry together
// what the NPUs of a leaf can send, divided by the oversubscription.
#ifndef ASTRA_BRIDGE_ENGINE_LINKS_CONFIG_H_
#define ASTRA_BRIDGE_ENGINE_LINKS_CONFIG_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"
#include "xla_profiler/base/config/config_value.h"

namespace meridian {

// Fails, with the line, at a key that is not one of these: what is not understood could change the
// network.
absl::Status CheckKeys(const ConfigValue& map, absl::Span<const absl::string_view> keys);

// Reads `links` into a network that has its source and dimensions. `gibibytes` says whether
// bandwidths are in GiB rather than GB per second. Errors name the source and the line.
absl::Status ReadLinks(const ConfigValue& links, bool gibibytes, NetworkConfig* network);

// Returns InvalidArgument, naming the source and the link at fault, unless every link joins two
// different devices, none leads to a switch that has no other, all NPUs reach each other, and values
// are within the bounds of network_config.h. Multiples are positive.
absl::Status CheckLinks(const NetworkConfig& network);

// Makes multiples of a calibrated network the values that they stand for. A link has the bandwidth
// of the last dimension, and its share of the latency between two ranks: half of it at a switch,
// all of it between two NPUs. InvalidArgument when the values are then out of bounds, or the
// calibrated network has links itself.
absl::Status ResolveLinks(const NetworkConfig& calibrated, NetworkConfig* network);

// Returns the same network as links: one for each of AstraSim's, and a switch for each block of
// shape Switch. InvalidArgument when there are more than kMaxLinks.
absl::StatusOr<NetworkConfig> AsLinks(const NetworkConfig& network);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_LINKS_CONFIG_H_
