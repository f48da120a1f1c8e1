// SPDX-License-Identifier: Apache-2.0
// How a job's communication is to be timed: the file behind --config, YAML.
//
//   network_backend:
//     model: embedded               # the default; analytical (without congestion), astra
//     astra:
//       backend: analytical         # AstraSim's only backend here
//       congestion: aware           # or unaware
//       mode: snapshot              # isolated (default): every edge alone; or all together
//       binary: bin/AstraSim        # default: looked up in PATH
//       timeout_s: 600              # of one run of it
//   topologies:                     # by the topology_key of edges
//     default: node.yml             # also for edges without a key
//     pod: {network: pod.yml, system: pod.json}
//   system: system.json             # default: what suits each topology
//   corrections: corrections.json
//   rank_to_device: {8: 0, 9: 1}    # or a list; default: rank and device are the same
//   groups: {tp0: [0, 1, 2, 3]}     # by the group_id of edges
//   group_topologies: {tp0: pod}    # of edges without a topology_key
//   cache: /scratch/cache           # folder for simulated times; default: none is kept
//
// Paths are relative to the file. Keys that are not known are refused.
#ifndef ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_
#define ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

enum class TimingModel {
  kEmbedded,
  // The embedded engine without congestion: latency and bandwidth alone.
  kAnalytical,
  kAstra,
};

enum class TimingMode {
  // Every comm edge alone on its network.
  kIsolated,
  // All comm edges together; not with kAstra.
  kSnapshot,
};

struct TimingConfig {
  TimingModel model = TimingModel::kEmbedded;
  Congestion congestion = Congestion::kAware;
  TimingMode mode = TimingMode::kIsolated;
  // Path of the AstraSim program; when empty, it is looked up in PATH.
  std::string astra_binary;
  absl::Duration astra_timeout = absl::Minutes(10);

  // The networks by topology_key; one for all comm edges has the key "" and is the only one.
  std::map<std::string, FabricFiles> topologies;
  // Path of the file of corrections; empty for none.
  std::string corrections;
  JobLayout layout;

  // Folder of the cache; empty for none.
  std::string cache_folder;
};

// Errors are "source: key.key: reason" or, when it is no YAML, "source:line: reason".
absl::StatusOr<TimingConfig> ParseTimingConfig(absl::string_view yaml, absl::string_view source);

absl::StatusOr<TimingConfig> ReadTimingConfig(FileSystem& file_system, const std::string& path);

// What the flags of a command say in place of the configuration; empty, or 0: nothing.
struct TimingFlags {
  // Values of --engine, --mode and --congestion.
  std::string engine = {};
  std::string mode = {};
  std::string congestion = {};
  std::string astra_binary = {};
  double astra_timeout_s = 0;
  std::string cache_folder = {};
  // Carries all comm edges, in place of all topologies; its system is that of each topology where it
  // has no network.
  FabricFiles fabric = {};
  std::string corrections = {};
};

// Errors name the flag.
absl::Status ApplyTimingFlags(const TimingFlags& flags, TimingConfig* config);

// Returns the paths of the files that the configuration names.
std::vector<std::string> FilesOf(const TimingConfig& config);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CONFIGURATION_TIMING_CONFIG_H_
