// What calls waited for when the trace does not say so. Kineto tells which record a wait is for,
// and which stream a synchronising call is for, only in cuda_sync events, which many traces lack.
// Then there is a call that waits and the times:
//
//   host       [cudaStreamWaitEvent] [cudaLaunchKernel]
//   stream A   |------------ work ------------|
//   stream B      idle                          |-- launched work --|
//
// The first work that a thread launches after cudaStreamWaitEvent is taken to have waited for the
// last work of other streams of its device that ended before it started, if that ended after the
// launch and after the work before on its own stream. A call that synchronises with it is not told
// what is taken to have waited for the last work that ended before it returned, if that ended
// within the call. Otherwise nobody waited.
#ifndef CRITICAL_PATH_INFERRED_WAITS_H_
#define CRITICAL_PATH_INFERRED_WAITS_H_

#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Returns such waits for those of the calls that `known`, the dependencies found without them, does
// not explain: each once, in the order of DeviceDependencies::edges. cudaEventQuery does not wait.
std::vector<DeviceDependency> InferWaits(const EventTable& table, const DeviceDependencies& known,
                                         absl::Span<const SyncCall> sync_calls);

}  // namespace meridian

#endif  // CRITICAL_PATH_INFERRED_WAITS_H_
