// SPDX-License-Identifier: Apache-2.0
// The engine's Simulate, done by a user's AstraSim: the same inputs, the same times, at a process a
// run. Files go into a folder of their own that is gone afterwards.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct AstraSimulatorOptions {
  // Path of the program; absolute, since it runs in another folder.
  std::string binary;
  // Where the folders of runs are made; must exist.
  std::string work_folder = "/tmp";
  // How long one run may take.
  absl::Duration timeout = absl::Minutes(10);
  // Fill in SimulationResult::nodes.
  bool node_times = false;
};

// Runs it once, never twice: it is deterministic. It tells nothing of activity and transfers. Errors
// are those of RunChildProcess, WriteAstraFiles and AstraFinishTimes; DataLoss when its log lacks
// node times.
absl::StatusOr<SimulationResult> SimulateWithAstraSim(FileSystem& file_system,
                                                      const Workload& workload,
                                                      const NetworkConfig& network,
                                                      const SystemConfig& system,
                                                      const AstraSimulatorOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_
