// SPDX-License-Identifier: Apache-2.0
// A user's AstraSim: where it is, and what it is. The program has no --version and no --help, so it
// is known by its contents and by what it answers: on a switch, a megabyte takes
// 2 * latency + bytes / bandwidth without congestion, and twice (latency + bytes / bandwidth) with.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_BINARY_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_BINARY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Returns the path of the program: `given` if that is not empty, else the first of the names that
// AstraSim's own build gives it in a list of folders as of $PATH. Unavailable when there is none,
// with what to do.
absl::StatusOr<std::string> FindAstraBinary(FileSystem& file_system, const std::string& given,
                                            absl::string_view search_path, Congestion congestion);

// Returns "binary " and a hash of the program.
absl::StatusOr<std::string> HashOfAstraBinary(FileSystem& file_system, const std::string& binary);

// Runs the program of the options once on a tiny case. Returns HashOfAstraBinary.
// InvalidArgument when it is AstraSim with the other kind of congestion; Unavailable when it fails, or
// answers what no AstraSim would.
absl::StatusOr<std::string> ProbeAstraBinary(FileSystem& file_system,
                                             const AstraSimulatorOptions& options,
                                             Congestion wanted);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_BINARY_H_
