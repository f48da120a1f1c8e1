// The collectives that the engine knows.
#ifndef ASTRA_BRIDGE_ENGINE_ENGINE_COLLECTIVE_H_
#define ASTRA_BRIDGE_ENGINE_ENGINE_COLLECTIVE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

enum class EngineCollective : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  // Not simulated: lasts as long as its node says.
  kBroadcast,
};

// Those whose messages are simulated, from kAllReduce on.
inline constexpr int kSimulatedCollectives = 4;

// Returns e.g. "all-reduce", as in the keys of the system configuration and of corrections.
absl::string_view EngineCollectiveName(EngineCollective op);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_ENGINE_COLLECTIVE_H_
