// What all exports of a profile take and tell.
#ifndef XLA_PROFILER_TRACE_EXPORT_EXPORT_OPTIONS_H_
#define XLA_PROFILER_TRACE_EXPORT_EXPORT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>

namespace meridian {

struct ExportOptions {
  // Unix time of the session's start; nullopt when the file is to tell.
  std::optional<int64_t> profile_start_ns;
  // Called now and then with the file offset reached; may be null.
  std::function<void(uint64_t offset)> progress;
};

// What was written, and what was left out and why.
struct ExportStats {
  int64_t processes = 0;
  // Lines that have events, and the further tracks for events that overlap on theirs.
  int64_t tracks = 0;
  int64_t overlap_tracks = 0;
  int64_t slices = 0;
  // Readings of counters.
  int64_t counter_values = 0;
  // Events with the beginning or the end of an arrow from launch to work. Not every launch has its
  // work in the profile.
  int64_t flow_starts = 0;
  int64_t flow_ends = 0;

  // Events left out: those that stand for several and have no start, those of negative duration,
  // those at times that the format cannot hold, those that overlap more than
  // NestingLanes::kMaxLanes others.
  int64_t aggregated = 0;
  int64_t negative_durations = 0;
  int64_t out_of_range = 0;
  int64_t too_many_overlaps = 0;
  // Stats left out because they are bytes, or beyond TraceSlice::kMaxArgs of one event.
  int64_t bytes_stats = 0;
  int64_t excess_stats = 0;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_EXPORT_OPTIONS_H_
