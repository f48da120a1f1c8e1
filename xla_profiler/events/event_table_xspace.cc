#include "xla_profiler/events/event_table_xspace.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/events/event_category.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

// Returns n of "/device:GPU:<n>" or "/device:TPU:<n> ...".
std::optional<int64_t> DeviceId(absl::string_view plane_name) {
  if (!absl::ConsumePrefix(&plane_name, kGpuPlanePrefix) &&
      !absl::ConsumePrefix(&plane_name, kTpuPlanePrefix)) {
    return std::nullopt;
  }
  size_t digits = 0;
  while (digits < plane_name.size() && absl::ascii_isdigit(plane_name[digits])) ++digits;
  int64_t id = 0;
  if (!absl::SimpleAtoi(plane_name.substr(0, digits), &id)) return std::nullopt;
  return id;
}

Track MakeTrack(const XPlaneVisitor& plane, const XLineVisitor& line) {
  Track track;
  if (absl::StartsWith(plane.Name(), kDevicePlanePrefix)) track.kind = TrackKind::kDevice;
  track.clock = ClockDomainOf(plane.Name(), line.Name());
  track.process = std::string(plane.Name());
  track.process_name = track.process;
  track.thread = absl::StrCat(line.Id());
  track.name = std::string(line.DisplayName());
  track.device_id = DeviceId(plane.Name());
  return track;
}

class Loader {
 public:
  absl::Status AddPlane(const XPlaneVisitor& plane) {
    name_ids_.clear();
    return plane.ForEachLine([&](const XLineVisitor& line) { return AddLine(plane, line); });
  }

  XSpaceTable& result() { return result_; }

 private:
  absl::Status AddLine(const XPlaneVisitor& plane, const XLineVisitor& line) {
    if (line.NumEvents() > EventTable::kMaxRows - result_.table.size()) {
      return absl::OutOfRangeError(absl::StrCat("more than ", EventTable::kMaxRows, " events"));
    }
    const TrackId track = result_.table.AddTrack(MakeTrack(plane, line));
    return line.ForEachEvent([&](const XEventVisitor& event) { AddEvent(line, track, event); });
  }

  void AddEvent(const XLineVisitor& line, TrackId track, const XEventVisitor& event) {
    if (event.IsAggregatedEvent()) {
      ++result_.aggregated;
      return;
    }
    if (event.DurationPs() < 0) {
      ++result_.negative_durations;
      return;
    }
    const absl::int128 wide_ps = absl::int128(line.TimestampNs()) * kPsPerNs + event.OffsetPs();
    const std::optional<int64_t> start_ps = NarrowToInt64(wide_ps);
    if (!start_ps.has_value() || !NarrowToInt64(wide_ps + event.DurationPs()).has_value()) {
      ++result_.out_of_range;
      return;
    }
    EventRecord row;
    row.track = track;
    row.name = FindName(event);
    row.start_ps = *start_ps;
    row.duration_ps = event.DurationPs();
    const bool on_device = result_.table.track(track).kind == TrackKind::kDevice;
    row.category = XSpaceEventCategory(on_device, line, event);
    const XStatVisitor* correlation = event.GetEventOrMetadataStat(StatType::kCorrelationId);
    if (correlation != nullptr) row.correlation = correlation->IntOrUintValue();
    row.source_offset = event.FileOffset();
    result_.table.Add(row);
  }

  // Returns the name's id; events name their metadata by number, so few strings are looked up.
  NameId FindName(const XEventVisitor& event) {
    const auto [it, is_new] = name_ids_.try_emplace(event.Id());
    if (is_new) it->second = result_.table.InternName(event.Name());
    return it->second;
  }

  XSpaceTable result_;
  absl::flat_hash_map<int64_t, NameId> name_ids_;
};

}  // namespace

absl::StatusOr<XSpaceTable> LoadXSpace(const XSpaceReader& reader,
                                       const XSpaceTableOptions& options) {
  ASSIGN_OR_RETURN(const SessionInfo info, ReadSessionInfo(reader));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create(reader.name(), info, options.profile_start_ns));
  const int64_t start_ns = clock.start_ns();
  Loader loader;
  RETURN_IF_ERROR(
      reader.ForEachPlane([&](const XPlaneVisitor& plane) { return loader.AddPlane(plane); }));
  loader.result().table.set_base_ns(start_ns);
  return std::move(loader.result());
}

}  // namespace meridian
