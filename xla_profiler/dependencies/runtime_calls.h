// SPDX-License-Identifier: Apache-2.0
// The host's calls into the runtime or driver of CUDA and HIP: which call launched what, and which
// calls make a stream or the host wait for device work.
#ifndef XLA_PROFILER_DEPENDENCIES_RUNTIME_CALLS_H_
#define XLA_PROFILER_DEPENDENCIES_RUNTIME_CALLS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// The host's calls by correlation id. A snapshot of a table that holds one process's profile: ids
// of other processes mean other calls.
class CallIndex {
 public:
  explicit CallIndex(const EventTable& table);

  // Returns the host's row of that correlation id, the last to start if there are several (calls
  // nest: it is the innermost). Profilers give 0 to what no call has caused, so that 0 is nullopt.
  std::optional<EventRow> Find(std::optional<uint64_t> correlation) const;

 private:
  // Rows by correlation id.
  absl::flat_hash_map<uint64_t, EventRow> rows_;
};

// Why something waited for device work, or work for a call: device_dependencies.h.
enum class DeviceDependencyKind : uint8_t {
  kLaunch,
  kStreamOrder,
  kEventWait,   // cudaStreamWaitEvent: a stream waits for a recorded event
  kEventSync,   // cudaEventSynchronize, cudaEventQuery: the host waits or asks for one
  kStreamSync,  // cudaStreamSynchronize
  kDeviceSync,  // cudaDeviceSynchronize, cuCtxSynchronize
  kBlockingCopy,
  // Work that nothing in the trace explains the late start of: inferred_waits.h.
  kInferredWait,
  // The host went on with its next call when the work, or a call of another thread, had ended.
  kCallStart,
  kLast = kCallStart,
};
inline constexpr int kNumDeviceDependencyKinds = static_cast<int>(DeviceDependencyKind::kLast) + 1;

// Returns what waits in the call of that name; nullopt for all other calls. CUDA's runtime and
// driver and HIP name them alike, and may put a version after "_".
std::optional<DeviceDependencyKind> FindSyncKind(absl::string_view call_name);

// True for calls that return when the copy is done: copies that are not called Async, and those
// that are, but end in the host's pageable memory, as Kineto's names of copies say. Exceptions,
// such as copies within a device, show in the times.
bool IsBlockingCopy(absl::string_view call_name, absl::string_view copy_name);

// One call, with as much as the profile tells about it.
struct SyncCall {
  // One of kEventWait, kEventSync, kStreamSync and kDeviceSync.
  DeviceDependencyKind kind = DeviceDependencyKind::kDeviceSync;
  // The host's row of the call; nullopt when it is not in the profile.
  std::optional<EventRow> call;
  // Nullopt when the profile does not say.
  std::optional<int64_t> device_id;
  // Of kEventWait the stream that waits, of kStreamSync the one waited for; nullopt when the
  // profile does not say.
  std::optional<int64_t> stream;
  // Of kEventWait and kEventSync: the host's row of the cudaEventRecord that is waited for, and the
  // stream that it recorded, which is taken to be of the same device.
  std::optional<EventRow> record;
  std::optional<int64_t> record_stream;
};

// Returns the table's calls by the names of its host rows, in the table's order, with nothing told
// but kind and row.
std::vector<SyncCall> FindSyncCalls(const EventTable& table);

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_RUNTIME_CALLS_H_
