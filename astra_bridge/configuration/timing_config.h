// SPDX-License-Identifier: Apache-2.0
// How a job's communication is to be timed: the file behind --config, YAML.
//
//   network_backend:
//     model: embedded               # the default; analytical (without congestion)
//     astra:
//       congestion: aware           # or unaware, fair
//       mode: snapshot              # isolated (default): every edge alone; or all together
//   topologies:                     # by the topology_key of edges
//     default: node.yml             # also for edges without a key
//     pod: {network: pod.yml, system: pod.json}
//   system: system.json             # default: what suits each topology
//   corrections: corrections.json
//   cache: /scratch/cache           # folder for simulated times; default: none is kept
//
// Paths are relative to the file. Keys that are not known are refused.
#ifndef ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_
#define ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

enum class TimingModel {
  kEmbedded,
  // The embedded engine without congestion: latency and bandwidth alone.
  kAnalytical,
  // In files for AstraSim, whose times the embedded engine gives.
  kAstra,
};

enum class TimingMode {
  // Every comm edge alone on its network.
  kIsolated,
  // All comm edges together.
  kSnapshot,
};

struct TimingConfig {
  TimingModel model = TimingModel::kEmbedded;
  Congestion congestion = Congestion::kAware;
  TimingMode mode = TimingMode::kIsolated;

  // The networks by topology_key; one for all comm edges has the key "" and is the only one.
  std::map<std::string, FabricFiles> topologies;
  // Path of the file of corrections; empty for none.
  std::string corrections;
  // Folder of the cache; empty for none.
  std::string cache_folder;
};

// Errors are "source: key.key: reason" or, when it is no YAML, "source:line: reason".
absl::StatusOr<TimingConfig> ParseTimingConfig(absl::string_view yaml, absl::string_view source);

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path);

// What a configuration asks for: the networks, the engine, its cache and the corrections.
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

#endif  // ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_
