// SPDX-License-Identifier: Apache-2.0
// Which thread a thread waited for while it did nothing.
// Threads of a process take turns, as those of forward and backward pass do:
//
//   thread 1   [forward]   . . . gap . . .   [optimizer]
//   thread 2               [backward ... ]
//
// A thread that is outside of all operators and calls is continued by the home thread if that began
// or ended something in the gap; else by the last other thread that did a whole stretch of work,
// from doing nothing to doing nothing, within it.
#ifndef XLA_PROFILER_DEPENDENCIES_THREAD_TURNS_H_
#define XLA_PROFILER_DEPENDENCIES_THREAD_TURNS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/dependencies/device_dependencies.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// True for the host's operators and calls.
inline bool IsHostWork(EventCategory category) {
  return category == EventCategory::kCpuOp || category == EventCategory::kRuntimeApi;
}

// Returns for each track whether it is a thread that runs operators or launches work. Others only
// watch, as those that ask again and again whether a collective is over.
std::vector<bool> FindWorkers(const EventTable& table, const DeviceDependencies& dependencies);

// Returns the thread that the others serve: the busiest worker of the host; nullopt without any.
std::optional<TrackId> FindHomeThread(const EventTable& table, const std::vector<bool>& is_worker);

class ThreadTurns {
 public:
  // A start or an end of the host's work.
  struct Moment {
    EventRow row = 0;
    bool is_start = false;
  };

  // `is_worker` is FindWorkers'. The home thread is the one given, if it works, else FindHomeThread's.
  ThreadTurns(const EventTable& table, const TrackIndex& index, const std::vector<bool>& is_worker,
              std::optional<TrackId> home = std::nullopt);

  // Returns when the thread that was waited for in the gap had done its turn. That is before the
  // gap's end, so that no two threads wait for each other.
  std::optional<Moment> Find(TrackId track, int64_t begin_ps, int64_t end_ps) const;

 private:
  struct Stretch {
    TrackId track = 0;
    uint32_t process = 0;
    // The row that ends it.
    EventRow last = 0;
    int64_t start_ps = 0;
    int64_t end_ps = 0;
  };

  void AddStretches(TrackId track, absl::Span<const EventRow> rows);
  void AddHomeMoments(absl::Span<const EventRow> rows);
  int64_t TimeOf(const Moment& moment) const {
    return moment.is_start ? table_.start_ps(moment.row) : table_.end_ps(moment.row);
  }

  const EventTable& table_;
  const std::vector<bool> is_worker_;
  // By track: its process, numbered.
  std::vector<uint32_t> processes_;
  std::optional<TrackId> home_;
  // What the home thread did, in order.
  std::vector<Moment> home_moments_;
  // Of all workers, in order of process, then end.
  std::vector<Stretch> stretches_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_DEPENDENCIES_THREAD_TURNS_H_
