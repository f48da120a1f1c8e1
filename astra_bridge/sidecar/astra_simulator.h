// SPDX-License-Identifier: Apache-2.0
// The engine's Simulate, done by a user's AstraSim: the same inputs, the same times, at a process a
// run. Files go into a folder of their own that is gone afterwards. On standard output it writes one
// line per rank in the order in which they finish (wrapped here):
//
//   [date time] [workload] [info] sys[3] finished, 33829 cycles,
//       exposed communication 33829 cycles.
//
// and with "trace-enabled" in its log, for each node:
//
//   ... issue,sys->id=3, tick=0, node->id=1, node->name=AR, node->type=7
//   ... callback,sys->id=3, tick=33829, node->id=1, node->name=AR, node->type=7
//
// A cycle is a nanosecond. The exit code says little: AstraSim exits with 0 when ranks are stuck,
// and crashes after all is done. What counts is whether every rank has finished.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/simulation_result.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "astra_bridge/sidecar/child_process.h"
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

// The user's own files for an AstraSim with a network that the engine does not have (ns3, ...). They
// are handed on as they are. Paths are absolute.
struct AstraBackendFiles {
  // Of the traces.
  std::string prefix;
  std::string system;
  std::string network;
  // May be empty, as analytical networks have none.
  std::string logical_topology;
  // Empty when there are no groups but that of all ranks.
  std::string groups;
  // Empty when there is no remote memory.
  std::string memory;
};

// Runs it in the folder of the program, from which such networks name their own files, and where they
// leave what they write. Nothing of the times can be checked. Errors are those of
// SimulateWithAstraSim. Node times are there when the system has "trace-enabled" and the log, which
// goes on in log/log.log, was not cut.
absl::StatusOr<SimulationResult> RunAstraBackend(FileSystem& file_system,
                                                 const AstraBackendFiles& files, int64_t ranks,
                                                 const AstraSimulatorOptions& options);

// What a run left: how the process ended, and what it wrote to its two streams.
struct AstraRun {
  ChildProcessResult end;
  absl::string_view output;
  absl::string_view errors;
};

// Returns when each rank finished, by rank, however the process ended. Unless all did:
//   InvalidArgument   it refused a configuration file (exit 255)
//   DeadlineExceeded  it took longer than `timeout`
//   Aborted           all other: stuck ranks, a crash, output that makes no sense
// with what it said itself. Runs are deterministic, so none is worth another try.
absl::StatusOr<std::vector<int64_t>> AstraFinishTimes(const AstraRun& run, int64_t ranks,
                                                      absl::Duration timeout);

// Reads the times of nodes from the parts of the log, in the order in which they were written, each
// of whole lines. Returns the nodes by rank and id. DataLoss when one was issued and did not
// finish, finished without being issued, or occurs twice: lines are missing.
absl::StatusOr<std::vector<NodeTime>> ParseAstraNodeTimes(
    absl::Span<const absl::string_view> log_parts, int64_t ranks);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_SIMULATOR_H_
