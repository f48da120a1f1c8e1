// What a simulation is to do besides what its configuration says.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "astra_bridge/engine/engine_collective.h"
#include "astra_bridge/engine/network_config.h"

namespace meridian {

inline constexpr int32_t kMaxCommStreams = 1 << 16;

// Returns how long a collective of so many bytes (those that one rank puts in) lasts, from the time
// that the engine gives it, or nullopt when the engine's time stands.
using DurationCorrection =
    std::function<std::optional<int64_t>(EngineCollective op, int64_t bytes, int64_t engine_ns)>;

struct SimulationOptions {
  Congestion congestion = Congestion::kAware;
  // How many collectives and sends a rank may run at once, each with chunks of its own under way.
  // AstraSim: 1.
  int32_t comm_streams = 1;
  // Null: none. Applied to collectives that no other message meets on the network.
  DurationCorrection correction;
  // Fill in SimulationResult::nodes and ::links.
  bool node_times = false;
  bool link_use = false;
  // Null: none. Told now and then how many of the nodes are over.
  std::function<void(int64_t done, int64_t nodes)> progress;
  // Take no short cuts. They are exact: this is for tests of that, and for comparison.
  bool events_only = false;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_OPTIONS_H_
