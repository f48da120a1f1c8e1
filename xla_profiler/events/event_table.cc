#include "xla_profiler/events/event_table.h"

#include <algorithm>
#include <tuple>

namespace meridian {

TrackIndex::TrackIndex(const EventTable& table)
    : begins_(table.tracks().size() + 1), rows_(table.size()) {
  for (EventRow row = 0; row < table.size(); ++row) ++begins_[table.track_id(row) + 1];
  for (size_t track = 1; track < begins_.size(); ++track) begins_[track] += begins_[track - 1];
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  for (EventRow row = 0; row < table.size(); ++row) rows_[next[table.track_id(row)]++] = row;

  const auto comes_before = [&](EventRow a, EventRow b) {
    return std::make_tuple(table.start_ps(a), -table.duration_ps(a), a) <
           std::make_tuple(table.start_ps(b), -table.duration_ps(b), b);
  };
  for (size_t track = 0; track + 1 < begins_.size(); ++track) {
    const auto begin = rows_.begin() + begins_[track], end = rows_.begin() + begins_[track + 1];
    // Most profilers write tracks in order.
    if (!std::is_sorted(begin, end, comes_before)) std::sort(begin, end, comes_before);
  }
}

}  // namespace meridian
