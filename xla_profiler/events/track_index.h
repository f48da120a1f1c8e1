// The rows of an event table, track by track in the order in which events nest: by start, of equal
// starts the longer first, else in file order.
//
//   begins:  0       3   5          rows:  2 0 4 | 1 5 | 3
//            track 0 |   track 2           track 0
//                    track 1
#ifndef XLA_PROFILER_EVENTS_TRACK_INDEX_H_
#define XLA_PROFILER_EVENTS_TRACK_INDEX_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

// A snapshot: rows added to the table later are not in it. Costs four bytes per row.
class TrackIndex {
 public:
  explicit TrackIndex(const EventTable& table);

  // Empty for a track without events.
  absl::Span<const EventRow> Rows(TrackId track) const {
    return absl::MakeConstSpan(rows_).subspan(begins_[track], begins_[track + 1] - begins_[track]);
  }

 private:
  // Where each track's rows begin, and one more for the end.
  std::vector<size_t> begins_;
  std::vector<EventRow> rows_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_EVENTS_TRACK_INDEX_H_
