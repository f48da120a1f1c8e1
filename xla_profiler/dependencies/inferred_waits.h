// SPDX-License-Identifier: Apache-2.0
// What device work and calls waited for when the trace does not say so.
//
// Work that starts later than everything it is known to wait for. A device starts work a few
// microseconds after the last thing that it waits for (2 us at the 95th percentile of recorded
// runs, 19 at most), so work that starts over kMaxStartDelayPs later waited for something else:
//
//   stream A   |------------ work ------------|
//   stream B   launched . . . . . . . . . . . . |-- work --|
//
// If other work of its device had just ended then, it is taken to have waited for the last of that.
// Otherwise the device was busy with, or waited for, something that is not in the trace.
//
// Calls. Kineto tells which record a wait is for, and which stream a synchronising call is for,
// only in cuda_sync events, which many traces lack. Then there is a call that waits and the times:
// of the first work launched after cudaStreamWaitEvent, and of a synchronising call itself
// (docs/run_graph.md#inferred-waits).
#ifndef XLA_PROFILER_DEPENDENCIES_INFERRED_WAITS_H_
#define XLA_PROFILER_DEPENDENCIES_INFERRED_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// How long after the last thing that it waits for, at most, a device starts work.
inline constexpr int64_t kMaxStartDelayPs = 20'000'000;

// A piece of work of one device; times may count from anywhere.
struct DeviceSpan {
  int64_t stream = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // When everything that the work is known to wait for had happened, its launch included.
  int64_t ready_ps = 0;
};

inline constexpr size_t kNoSpan = static_cast<size_t>(-1);

// Returns, for each piece of work of a device, the position of the one on another stream that it is
// taken to have waited for, or kNoSpan.
std::vector<size_t> InferDeviceWaits(absl::Span<const DeviceSpan> spans);

// Adds the waits of calls and of device work to the dependencies found without them, for those that
// these do not explain: each wait once, in the order of DeviceDependencies::edges. cudaEventQuery
// does not wait.
void AddInferredWaits(const EventTable& table, absl::Span<const SyncCall> sync_calls,
                      DeviceDependencies* dependencies);

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_INFERRED_WAITS_H_
