// The embedded network engine: runs a workload on a network, with the times that AstraSim's
// analytical backends give, to the nanosecond.
//
//   Workload workload;
//   workload.ranks.resize(8);
//   for (RankWorkload& rank : workload.ranks) rank.Add(AllReduceNode(/*bytes=*/1 << 20));
//   ASSIGN_OR_RETURN(const SimulationResult result, Simulate(workload, network, system, {}));
//   result.finish_ns[3];
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_H_

#include "absl/status/statusor.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation_options.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// Runs the workload to its end. What has no end or no meaning is InvalidArgument, with the source
// and key, or the rank and node, at fault: in a deadlock, the nodes that wait for each other.
absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_H_
