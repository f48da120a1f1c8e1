// SPDX-License-Identifier: Apache-2.0
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
// launch and after the work before on its own stream. A call that synchronises with the device, the
// trace does not say with what, is taken to have waited for the last work that ended before it
// returned, if that ended within the call. Otherwise nobody waited.
#ifndef CRITICAL_PATH_TRACE_INFERRED_WAITS_H_
#define CRITICAL_PATH_TRACE_INFERRED_WAITS_H_

#include <cstddef>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// Adds such waits to the dependencies found without them, for those of the calls that these do not
// explain: each wait once, in the order of DeviceDependencies::edges. Returns how many were added.
// cudaEventQuery does not wait.
size_t AddInferredWaits(const EventTable& table, absl::Span<const SyncCall> sync_calls,
                        DeviceDependencies* dependencies);

}  // namespace meridian

#endif  // CRITICAL_PATH_TRACE_INFERRED_WAITS_H_
