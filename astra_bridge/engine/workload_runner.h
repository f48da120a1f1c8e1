// SPDX-License-Identifier: Apache-2.0
// Runs the nodes of all ranks: issues what is ready and finds its resource free, and goes on when
// it is over.
#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_

#include "absl/status/statusor.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// Runs a workload that Simulate has checked. Errors name the ranks and nodes at fault: nodes that
// depend on each other in a circle, collectives that cannot be carried out, deadlocks.
absl::StatusOr<SimulationResult> RunWorkload(const Workload& workload, const GroupTable& groups,
                                             const Topology& topology, const SystemConfig& system,
                                             const SimulationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_RUNNER_H_
