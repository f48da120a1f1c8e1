// SPDX-License-Identifier: Apache-2.0
// Which groups of a workload have the links of their rings to themselves on a network of links, so
// that their collectives take the same time whatever else happens.
#ifndef ASTRA_BRIDGE_ENGINE_OWN_LINKS_H_
#define ASTRA_BRIDGE_ENGINE_OWN_LINKS_H_

#include <vector>

#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// Returns for each group of the table whether all its collectives are rings, and each message from a
// member to the next has links that no other message of the workload takes.
std::vector<bool> GroupsWithOwnLinks(const Workload& workload, const GroupTable& groups,
                                     const NetworkConfig& network, LinkPaths& paths,
                                     const SystemConfig& system);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_OWN_LINKS_H_
