#include "xla_profiler/events/event_table_xspace.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

// Returns the start of the earliest line that has events; 0 when none has.
absl::StatusOr<int64_t> EarliestLineNs(const XSpaceReader& reader) {
  std::optional<int64_t> earliest;
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine([&](const XLineVisitor& line) {
      if (line.NumEvents() == 0) return;
      earliest = std::min(earliest.value_or(line.TimestampNs()), line.TimestampNs());
    });
  }));
  return earliest.value_or(0);
}

Track TrackOf(const XPlaneVisitor& plane, const XLineVisitor& line) {
  Track track;
  track.kind = IsDevicePlane(plane.Name()) ? TrackKind::kDevice : TrackKind::kHost;
  track.clock = ClockDomainOf(plane.Name(), line.Name());
  track.process = track.process_name = std::string(plane.Name());
  track.thread = absl::StrCat(line.Id());
  track.name = std::string(line.DisplayName());
  return track;
}

// `earliest_ns` is the time of the line that the table's base is of.
absl::Status AddLine(const XPlaneVisitor& plane, const XLineVisitor& line, int64_t earliest_ns,
                     EventTable* table) {
  if (line.NumEvents() == 0) return absl::OkStatus();
  const TrackId track = table->AddTrack(TrackOf(plane, line));
  const bool on_device = table->track(track).kind == TrackKind::kDevice;
  const absl::int128 line_ps = (absl::int128(line.TimestampNs()) - earliest_ns) * kPsPerNs;
  return line.ForEachEvent([&](const XEventVisitor& event) -> absl::Status {
    if (event.IsAggregatedEvent()) return absl::OkStatus();
    const std::optional<int64_t> start_ps = NarrowToInt64(line_ps + event.OffsetPs());
    if (!start_ps.has_value() || event.DurationPs() < 0 ||
        !NarrowToInt64(absl::int128(*start_ps) + event.DurationPs()).has_value()) {
      return InvalidArgument("offset ", event.FileOffset(),
                             ": the event lies more than 106 days from the profile's first line, "
                             "or ends before it starts");
    }
    if (table->size() == EventTable::kMaxRows) return InvalidArgument("more than 2^32 - 1 events");
    EventRecord record;
    record.track = track;
    record.name = table->InternName(event.Name());
    record.start_ps = *start_ps;
    record.duration_ps = event.DurationPs();
    record.category = XSpaceEventCategory(on_device, line, event);
    if (const XStatVisitor* stat = event.GetStat(StatType::kCorrelationId)) {
      if (const std::optional<int64_t> id = stat->IntOrUintValue()) {
        record.correlation = static_cast<uint64_t>(*id);
      }
    }
    record.source_offset = event.FileOffset();
    table->Add(record);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<EventTable> LoadXSpace(const XSpaceReader& reader) {
  EventTable table;
  ASSIGN_OR_RETURN(const int64_t earliest_ns, EarliestLineNs(reader));
  ASSIGN_OR_RETURN(const SessionInfo session, ReadSessionInfo(reader));
  table.set_base_ns(
      SaturateToInt64(absl::int128(earliest_ns) + session.profile_start_ns.value_or(0)));
  RETURN_IF_ERROR(reader.ForEachPlane([&](const XPlaneVisitor& plane) {
    return plane.ForEachLine(
        [&](const XLineVisitor& line) { return AddLine(plane, line, earliest_ns, &table); });
  }));
  return table;
}

}  // namespace meridian
