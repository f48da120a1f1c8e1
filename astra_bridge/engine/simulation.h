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
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

inline constexpr int32_t kMaxCommStreams = 1 << 16;

// The most bytes of a collective or message: times of larger ones might not fit into 64 bits.
inline constexpr int64_t kMaxMessageBytes = int64_t{1} << 42;

// The longest that a node may last: the sum of a few fits into 64 bits.
inline constexpr int64_t kMaxDurationNs = int64_t{1} << 60;

// How long transfers last that are not simulated, by the nodes that issue them: a member's part of
// a collective from the last join on, the message of a send from the send on.
class FixedDurations {
 public:
  // No node of the workload has one at first.
  explicit FixedDurations(const Workload& workload) {
    for (const RankWorkload& rank : workload.ranks) {
      duration_ns_.emplace_back(rank.nodes().size(), kSimulated);
    }
  }

  // The node is given by its position among those of its rank. Durations are 0 to kMaxDurationNs;
  // of a collective, all members have one or none has.
  void Set(int32_t rank, uint32_t node, int64_t duration_ns) {
    duration_ns_[rank][node] = duration_ns;
  }

  // Returns nullopt for a node that is simulated.
  std::optional<int64_t> Find(int32_t rank, uint32_t node) const {
    const int64_t duration_ns = duration_ns_[rank][node];
    return duration_ns == kSimulated ? std::nullopt : std::optional<int64_t>(duration_ns);
  }

 private:
  static constexpr int64_t kSimulated = -1;

  // Durations in nanoseconds, indexed by rank, then by the node's position in its rank.
  std::vector<std::vector<int64_t>> duration_ns_;
};

// What a simulation is to do besides what its configuration says.
struct SimulationOptions {
  Congestion congestion = Congestion::kAware;
  // How many collectives and sends a rank may run at once, each with chunks of its own under way.
  // AstraSim: 1.
  int32_t comm_streams = 1;
  // A message goes on its way when its receive is issued, too, as with NCCL. AstraSim: at once.
  bool rendezvous = false;
  // Transfers with a duration here are not simulated and meet nothing on the network. Null: all are
  // simulated. Must outlive the simulation.
  const FixedDurations* fixed_durations = nullptr;
  // Bit d: the first double binary tree in dimension d is an odd one (CollectivePhase). AstraSim:
  // 0.
  uint64_t odd_trees = 0;
  // Fill in SimulationResult::nodes and ::transfers.
  bool node_times = false;
  bool transfers = false;
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
