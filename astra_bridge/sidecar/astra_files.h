// SPDX-License-Identifier: Apache-2.0
// What AstraSim reads, written from the engine's own inputs: a workload's execution traces,
// network YAML, system, group and memory JSON.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_FILES_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Names of the files within the folder. Relative paths keep the folder's own name out of AstraSim's
// sight: it takes a group file whose path contains "empty" for none.
inline constexpr absl::string_view kWorkloadPrefix = "workload";
inline constexpr absl::string_view kNetworkFile = "network.yml";
inline constexpr absl::string_view kSystemFile = "system.json";
inline constexpr absl::string_view kGroupsFile = "groups.json";
inline constexpr absl::string_view kMemoryFile = "memory.json";
inline constexpr absl::string_view kLogFolder = "log";

// Writes all files into an empty folder, and makes the log folder. Every rank has a node, since
// AstraSim wants one; the algorithms are the system's. Unimplemented for what AstraSim cannot express:
// meshes and more than 499 groups. With node_times every node's times will be in the log.
absl::Status WriteAstraFiles(FileSystem& file_system, const std::string& folder,
                             const Workload& workload, const NetworkConfig& network,
                             const SystemConfig& system, bool node_times);

// Writes a file that nobody needs after the run.
absl::Status WriteScratchFile(FileSystem& file_system, const std::string& path,
                              absl::string_view contents);

// Returns the network as YAML that gives AstraSim exactly these bandwidths.
absl::StatusOr<std::string> NetworkConfigToYaml(const NetworkConfig& network);

// Returns the system as JSON with every key that AstraSim would leave uninitialised.
std::string SystemConfigToJson(const SystemConfig& system, bool trace_enabled);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_FILES_H_
