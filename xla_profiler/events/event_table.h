// SPDX-License-Identifier: Apache-2.0
// All timed events of one profile in columns, whatever format they came from. Rows are in file
// order and are never removed:
//
//   row   track  name  start_ps  duration_ps  category  correlation  source_offset
//   0     0      0     0         353650000    cpu_op    -            1043
//   1     1      1     12000     18399000     kernel    2689         1377
//         |      |     |                                             |
//         v      v     from base_ns                                  where its args are to be read
//      tracks  names
//
// 41 bytes per event, in blocks, so that growing never copies what is there.
#ifndef XLA_PROFILER_EVENTS_EVENT_TABLE_H_
#define XLA_PROFILER_EVENTS_EVENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/xplane/clock_domain.h"

namespace meridian {

enum class TrackKind : uint8_t { kHost, kDevice };

// A thread of a process, a stream of a device, a line of a plane.
struct Track {
  TrackKind kind = TrackKind::kHost;
  ClockDomain clock = ClockDomain::kHost;
  // What the file calls the process (a Kineto pid; an XSpace plane's name), and a name for people.
  std::string process;
  std::string process_name;
  // The same for the thread (a Kineto tid; an XSpace line's id).
  std::string thread;
  std::string name;
  // The device of a device track; nullopt when the file does not say.
  std::optional<int64_t> device_id;
};

using TrackId = uint32_t;
using NameId = uint32_t;
using EventRow = uint32_t;

// What makes a row.
struct EventRecord {
  TrackId track = 0;
  NameId name = 0;
  // Picoseconds from the table's base_ns.
  int64_t start_ps = 0;
  int64_t duration_ps = 0;
  EventCategory category = EventCategory::kUnknown;
  // Joins the host's call to the device work it launched; no profiler gives out 2^64 - 1.
  std::optional<uint64_t> correlation;
  // Where the event stands in the (inflated) file.
  uint64_t source_offset = 0;
};

class EventTable {
 public:
  static constexpr size_t kMaxRows = std::numeric_limits<EventRow>::max();

  // Unix time that the rows' times count from.
  int64_t base_ns() const { return base_ns_; }
  void set_base_ns(int64_t base_ns) { base_ns_ = base_ns; }

  TrackId AddTrack(Track track) {
    tracks_.push_back(std::move(track));
    return static_cast<TrackId>(tracks_.size() - 1);
  }
  const std::vector<Track>& tracks() const { return tracks_; }
  const Track& track(TrackId id) const { return tracks_[id]; }
  Track& mutable_track(TrackId id) { return tracks_[id]; }

  NameId InternName(absl::string_view name) { return names_.Intern(name); }
  const StringPool& names() const { return names_; }

  // Appends a row. There must be fewer than kMaxRows, the duration must not be negative, and the
  // end must fit an int64.
  EventRow Add(const EventRecord& event) {
    MERIDIAN_CHECK(size_ < kMaxRows && event.duration_ps >= 0);
    if (size_ % kBlockRows == 0) blocks_.emplace_back(new Block);
    Block& block = *blocks_.back();
    const size_t i = size_ % kBlockRows;
    block.track[i] = event.track;
    block.name[i] = event.name;
    block.start_ps[i] = event.start_ps;
    block.duration_ps[i] = event.duration_ps;
    block.category[i] = event.category;
    block.correlation[i] = event.correlation.value_or(kNoCorrelation);
    block.source_offset[i] = event.source_offset;
    return static_cast<EventRow>(size_++);
  }

  // For events whose end comes later in the file.
  void set_duration_ps(EventRow row, int64_t duration_ps) {
    MERIDIAN_CHECK(duration_ps >= 0);
    At(row).duration_ps[row % kBlockRows] = duration_ps;
  }

  size_t size() const { return size_; }

  TrackId track_id(EventRow row) const { return At(row).track[row % kBlockRows]; }
  NameId name_id(EventRow row) const { return At(row).name[row % kBlockRows]; }
  absl::string_view name(EventRow row) const { return names_.Get(name_id(row)); }
  int64_t start_ps(EventRow row) const { return At(row).start_ps[row % kBlockRows]; }
  int64_t duration_ps(EventRow row) const { return At(row).duration_ps[row % kBlockRows]; }
  int64_t end_ps(EventRow row) const { return start_ps(row) + duration_ps(row); }
  EventCategory category(EventRow row) const { return At(row).category[row % kBlockRows]; }
  std::optional<uint64_t> correlation(EventRow row) const {
    const uint64_t correlation = At(row).correlation[row % kBlockRows];
    return correlation == kNoCorrelation ? std::nullopt : std::optional<uint64_t>(correlation);
  }
  uint64_t source_offset(EventRow row) const { return At(row).source_offset[row % kBlockRows]; }

 private:
  static constexpr uint64_t kNoCorrelation = std::numeric_limits<uint64_t>::max();
  static constexpr size_t kBlockRows = 2048;

  struct Block {
    int64_t start_ps[kBlockRows];
    int64_t duration_ps[kBlockRows];
    uint64_t correlation[kBlockRows];
    uint64_t source_offset[kBlockRows];
    TrackId track[kBlockRows];
    NameId name[kBlockRows];
    EventCategory category[kBlockRows];
  };

  Block& At(EventRow row) { return *blocks_[row / kBlockRows]; }
  const Block& At(EventRow row) const { return *blocks_[row / kBlockRows]; }

  int64_t base_ns_ = 0;
  std::vector<Track> tracks_;
  StringPool names_;
  size_t size_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;
};

// The rows of an event table, track by track in the order in which events nest: by start, of equal
// starts the longer first, else in file order.
//
//   begins:  0       3   5          rows:  2 0 4 | 1 5 | 3
//            track 0 |   track 2           track 0
//                    track 1
//
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

#endif  // XLA_PROFILER_EVENTS_EVENT_TABLE_H_
