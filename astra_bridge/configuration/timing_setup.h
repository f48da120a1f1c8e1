// SPDX-License-Identifier: Apache-2.0
// Puts together what a configuration asks for: the networks, an engine, its cache, what steps in
// when it fails, and the corrections.
//
//   CorrectedTiming( FallbackTiming( AstraSimTiming + cache, EmbeddedTiming ) )
#ifndef ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_
#define ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// What the configuration leaves to the machine.
struct TimingEnvironment {
  // Folders with programs, separated by colons as in $PATH.
  std::string search_path;
  // The folder in which runs of AstraSim get folders of their own.
  std::string work_folder = "/tmp";
  // The user insists on AstraSim: without it nothing is timed. Otherwise the embedded engine, which
  // gives the same times, takes its place with a warning.
  bool require_astra = false;
};

// Returns the environment of this process, by its variables PATH and TMPDIR.
TimingEnvironment MachineEnvironment(bool require_astra);

struct TimingSetup {
  // What the timing works on.
  std::shared_ptr<const FabricSet> fabrics;
  std::unique_ptr<NetworkTiming> timing;
  Congestion congestion = Congestion::kAware;
  // What corrections add to every transfer before it moves anything; absent without corrections.
  std::optional<double> overhead_ns;
  // The cache of simulated times; null when the cache is off.
  std::shared_ptr<TimingCache> cache;
  JobLayout layout;
  // What differs from what was asked, for the user to read.
  std::vector<std::string> warnings;
};

// Reads all files that the configuration names. Unavailable, with what to do, when AstraSim is
// required and not there; InvalidArgument when it is to time what runs together.
absl::StatusOr<TimingSetup> SetUpTiming(FileSystem& file_system, const TimingConfig& config,
                                        const TimingEnvironment& environment);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CONFIGURATION_TIMING_SETUP_H_
