#ifndef ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_
#define ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation_options.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// The longest that a node may last: the sum of a few fits into 64 bits.
inline constexpr int64_t kMaxDurationNs = int64_t{1} << 60;

// Returns InvalidArgument, naming rank and node or source and key, when what is to be simulated has
// no meaning: values out of range, ranks that do not exist, sends to oneself. Groups and
// dependencies are checked where they are looked up.
absl::Status CheckWorkload(const Workload& workload, const NetworkConfig& network,
                           const SystemConfig& system, const SimulationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_WORKLOAD_CHECK_H_
