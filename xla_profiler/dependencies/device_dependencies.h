// SPDX-License-Identifier: Apache-2.0
// What device work waited for, and what the host waited for, as edges between an event table's
// rows:
//
//   kind           from                           to                       runs from .. to ..
//   launch         the host's call                the work it launched     start .. start
//   stream order   work                           the stream's next work   end .. start
//   event wait     last work before the record    first work after the     end .. start
//                                                 wait, on its stream
//   event sync     last work before the record    cudaEventSynchronize     end .. end
//   stream sync    the stream's last work         cudaStreamSynchronize    end .. end
//   device sync    each stream's last work that   cudaDeviceSynchronize    end .. end
//                  the thread had not waited for
//   blocking copy  the copy                       cudaMemcpy               end .. end
//   inferred wait  work that had just ended       work (inferred_waits.h)  end .. start
//   call start     work or a call                 a thread's next call     end .. start
//
// Work is a kernel, copy or set on a stream. "Before" and "after" are the order in which work was
// enqueued: by the start of the call that launched it. An edge runs forward in time; one that would
// not is left out: the call did not wait (as a query, or a copy within a device), or the clocks
// disagree. So is what the profile does not tell enough about.
#ifndef XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_H_
#define XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/runtime_calls.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// How long before the end of the work before it, at most, a stream's next work is seen to start. It
// is begun early, so that its first instructions do not wait for the last of the work before, and
// clocks step by a microsecond: up to 22 us in recorded runs. Longer overlaps are those of branches
// of a CUDA graph.
inline constexpr int64_t kMaxEarlyStartPs = 25'000'000;

// From a start to an end.
struct WorkSpan {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

// True for work that overlaps with the work before it on its stream, but waited for it all the
// same.
inline bool StartsEarly(const WorkSpan& before, const WorkSpan& next) {
  return next.start_ps > before.start_ps && next.start_ps < before.end_ps &&
         next.end_ps > before.end_ps && before.end_ps - next.start_ps <= kMaxEarlyStartPs;
}

// True where the host waited for device work.
inline bool IsHostWait(DeviceDependencyKind kind) {
  return kind == DeviceDependencyKind::kEventSync || kind == DeviceDependencyKind::kStreamSync ||
         kind == DeviceDependencyKind::kDeviceSync || kind == DeviceDependencyKind::kBlockingCopy;
}

struct DeviceDependency {
  EventRow from = 0;
  EventRow to = 0;
  DeviceDependencyKind kind = DeviceDependencyKind::kLaunch;

  friend bool operator==(const DeviceDependency& a, const DeviceDependency& b) {
    return a.from == b.from && a.to == b.to && a.kind == b.kind;
  }
};

// Puts the edges in the order of DeviceDependencies::edges, each once.
void SortDependencies(std::vector<DeviceDependency>* edges);

struct DeviceDependencies {
  // Each once, in order of `to`, then `from`, then kind.
  std::vector<DeviceDependency> edges;
  // Work on all streams.
  uint64_t num_work = 0;
  // By row: whether it is device work that was launched before the profile began, since the profile
  // does not have its call, but has that of later work on its stream. Empty when there is none.
  std::vector<bool> is_earlier;
  bool IsEarlier(EventRow row) const { return !is_earlier.empty() && is_earlier[row]; }

  // How many of the edges are inferred from times (inferred_waits.h), of any kind.
  uint64_t inferred = 0;
};

// Finds all dependencies in the profile of one process; those that `sync_calls` cause, and those
// that the table alone tells. kineto/device_dependencies_json.h reads the calls.
//
// - All work of one correlation id was launched by one call (a CUDA graph). Work whose call is not
//   in the profile counts as enqueued right after its predecessor on the stream.
// - A stream is a track: equal stream numbers on two devices are two streams.
// - Of work that overlaps on its stream by more than kMaxEarlyStartPs, each waits for all that ended
//   since its predecessor started, or else for the last to end before it.
// - The last work is the last to end of what was enqueued.
// - A call that does not tell its device means the only one, if only one has work.
DeviceDependencies FindDeviceDependencies(const EventTable& table,
                                          absl::Span<const SyncCall> sync_calls);

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_DEVICE_DEPENDENCIES_H_
