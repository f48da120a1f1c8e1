// SPDX-License-Identifier: Apache-2.0
// The embedded network engine: runs a workload on a network, with the times that AstraSim's
// analytical backends give, to the nanosecond; or on links that messages share fairly.
//
//   Workload workload;
//   workload.ranks.resize(8);
//   for (RankWorkload& rank : workload.ranks) rank.Add(all_reduce_of_1_mib);
//   ASSIGN_OR_RETURN(const SimulationResult result, Simulate(workload, network, system, {}));
//   result.finish_ns[3];
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "chakra_export/et/et_attributes.h"

namespace meridian {

inline constexpr int32_t kMaxCommStreams = 1 << 16;

inline constexpr int64_t kMaxMessageBytes = kMaxCommBytes;

// The longest that a node may last: the sum of a few fits into 64 bits.
inline constexpr int64_t kMaxDurationNs = int64_t{1} << 60;

// What a simulation is to do besides what its configuration says.
struct SimulationOptions {
  Congestion congestion = Congestion::kAware;
  // How many collectives and sends a rank may run at once, each with chunks of its own under way.
  // AstraSim: 1.
  int32_t comm_streams = 1;
  // A message goes on its way when its receive is issued, too, as with NCCL. AstraSim: at once.
  bool rendezvous = false;
  // The ways through a network of links, to be kept from one simulation to the next. Null: they are
  // found anew. Must outlive the simulation, and no two may use it at once.
  LinkPaths* paths = nullptr;
  // Fill in SimulationResult::nodes.
  bool node_times = false;
  // Told now and then how many of the nodes are over. May be null.
  std::function<void(int64_t done, int64_t nodes)> progress;
  // Take no short cuts. They are exact: this is for tests of that, and for comparison.
  bool events_only = false;
};

// Runs the workload to its end. What has no end or no meaning is InvalidArgument, with the source
// and key, or the rank and node, at fault: in a deadlock, the nodes that wait for each other.
absl::StatusOr<SimulationResult> Simulate(const Workload& workload, const NetworkConfig& network,
                                          const SystemConfig& system,
                                          const SimulationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_H_
