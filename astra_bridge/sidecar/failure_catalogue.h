// What an end of AstraSim means. Its exit code says little: it exits with 0 when ranks are stuck,
// and crashes after all is done. What counts is whether every rank has finished.
#ifndef ASTRA_BRIDGE_SIDECAR_FAILURE_CATALOGUE_H_
#define ASTRA_BRIDGE_SIDECAR_FAILURE_CATALOGUE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "astra_bridge/sidecar/astra_output.h"
#include "astra_bridge/sidecar/child_process.h"

namespace meridian {

// OK when every rank has finished, however the process ended. Otherwise
//   InvalidArgument   it refused a configuration file (exit 255)
//   DeadlineExceeded  it took longer than `timeout`
//   Aborted           all other: stuck ranks, a crash, output that makes no sense
// with what is known about such ends. Runs are deterministic, so none is worth another try.
absl::Status CheckAstraRun(const ChildProcessResult& end, const AstraOutput& output,
                           absl::Duration timeout);

// Returns e.g. "crashed (signal 6) after all ranks had finished", or "" after a clean end. For runs
// that CheckAstraRun accepts.
std::string EndAfterFinish(const ChildProcessResult& end);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_FAILURE_CATALOGUE_H_
