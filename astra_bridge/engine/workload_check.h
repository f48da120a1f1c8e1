// SPDX-License-Identifier: Apache-2.0
// Whether a workload can be simulated on a network, and how long its nodes of computation last.
#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

struct SimulationOptions;

// Returns InvalidArgument, naming rank and node or source and key, when what is to be simulated has
// no meaning: values out of range, ranks that do not exist, sends to oneself. Groups and
// dependencies are checked where they are looked up.
absl::Status CheckWorkload(const Workload& workload, const NetworkConfig& network,
                           const SystemConfig& system, const SimulationOptions& options);

// Returns what messages call a rank: its source, or "rank 3" where it has none.
std::string RankName(const Workload& workload, int32_t rank);

// Returns whether operations and bytes decide how long the node lasts.
bool HasRoofline(const WorkloadNode& node, const SystemConfig& system);

// Returns how long a node with a roofline lasts; not finite where nothing is computed.
double RooflineNs(const WorkloadNode& node, const SystemConfig& system);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_
