// What a simulation is to do besides what its configuration says.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_

#include <cstdint>
#include <functional>

#include "astra_bridge/engine/fixed_durations.h"
#include "astra_bridge/engine/network_config.h"

namespace meridian {

inline constexpr int32_t kMaxCommStreams = 1 << 16;

struct SimulationOptions {
  Congestion congestion = Congestion::kAware;
  // How many collectives and sends a rank may run at once, each with chunks of its own under way.
  // AstraSim: 1.
  int32_t comm_streams = 1;
  // Of transfers that are not simulated; they meet nothing on the network. Null: all are
  // simulated. Must outlive the simulation.
  const FixedDurations* fixed_durations = nullptr;
  // Bit d: the first double binary tree in dimension d is an odd one (CollectivePhase). AstraSim:
  // 0.
  uint64_t odd_trees = 0;
  // Fill in SimulationResult::nodes, ::links and ::transfers.
  bool node_times = false;
  bool link_use = false;
  bool transfers = false;
  // Null: none. Told now and then how many of the nodes are over.
  std::function<void(int64_t done, int64_t nodes)> progress;
  // Take no short cuts. They are exact: this is for tests of that, and for comparison.
  bool events_only = false;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_
