// SPDX-License-Identifier: Apache-2.0
// Puts together what a configuration asks for: the networks, the engine, its cache and the corrections.
#ifndef ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_
#define ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct TimingSetup {
  // What the timing works on.
  std::shared_ptr<const FabricSet> fabrics;
  NetworkTiming timing;
  Congestion congestion = Congestion::kAware;
  // What corrections add to every transfer before it moves anything; absent without corrections.
  std::optional<double> overhead_ns;
  // The cache of simulated times; null when the cache is off.
  std::shared_ptr<TimingCache> cache;
  // What differs from what was asked, for the user to read.
  std::vector<std::string> warnings;
};

// Reads all files that the configuration names.
absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_
