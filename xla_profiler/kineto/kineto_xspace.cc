#include "xla_profiler/kineto/kineto_xspace.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/trace_json/trace_json_rewriter.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {
namespace {

// Protobuf's limit for a message.
constexpr size_t kMaxPlaneBytes = std::numeric_limits<int32_t>::max();
// Events are messages in memory before they are bytes, and take five times as much there.
constexpr int kEventsAtOnce = 8192;
// 58 days, and the year 2255: sums of these fit.
constexpr int64_t kMaxSpanPs = 5'000'000'000'000'000'000;
constexpr int64_t kMaxBaseNs = 9'000'000'000'000'000'000;

std::string PlaneNameOf(const Track& track) {
  if (track.kind == TrackKind::kHost) return std::string(kHostThreadsPlaneName);
  return absl::StrCat(kGpuPlanePrefix, track.device_id.value_or(0));
}

std::string LineNameOf(const Track& track) {
  const std::string thread = track.name.empty() ? track.thread : track.name;
  if (track.kind == TrackKind::kDevice) return thread;
  return absl::StrCat(track.process_name.empty() ? track.process : track.process_name, ": ",
                      thread);
}

// Events that are not UTF-8 are not loaded.
void SetValue(const JsonValue& value, XStatProto* stat) {
  if (const std::optional<std::string> text = value.AsString()) {
    stat->set_str_value(*text);
  } else if (const std::optional<int64_t> whole = value.AsInt64()) {
    stat->set_int64_value(*whole);
  } else if (const std::optional<uint64_t> large = value.AsUint64()) {
    stat->set_uint64_value(*large);
  } else if (const std::optional<double> number = value.AsDouble()) {
    stat->set_double_value(*number);
  } else {
    stat->set_str_value(std::string(value.text()));
  }
}

class PlaneWriter {
 public:
  PlaneWriter(const TraceJsonTable& trace, absl::string_view text, int64_t start_ps)
      : table_(trace.table), index_(trace.table), text_(text), start_ps_(start_ps) {}

  absl::Status Write(const std::string& name, const std::set<TrackId>& tracks, int64_t id,
                     ByteSink& sink) {
    XPlaneProto head;
    head.set_id(id);
    head.set_name(name);
    XPlaneProto tail;
    PlaneMetadataBuilder metadata(&tail);
    // Lengths precede content, so that the lines are kept until their plane is complete.
    absl::Cord lines;
    int64_t line_id = 0;
    for (const TrackId track : tracks) {
      absl::Cord line;
      // The bytes of a message are those of its parts, one after the other.
      XLineProto part;
      part.set_id(++line_id);
      part.set_name(LineNameOf(table_.track(track)));
      const auto end_part = [&]() -> absl::Status {
        RETURN_IF_ERROR(CheckSize(lines.size() + line.size() + part.ByteSizeLong(), name));
        line.Append(part.SerializeAsString());
        part.Clear();
        // The next events stand behind these, more or less.
        ForgetMapped(text_);
        return absl::OkStatus();
      };
      for (EventRow row : index_.Rows(track)) {
        AddEvent(row, &metadata, part.add_events());
        if (part.events_size() == kEventsAtOnce) RETURN_IF_ERROR(end_part());
      }
      RETURN_IF_ERROR(end_part());
      lines.Append(HeaderOf(XPlaneField::kLines, line.size()));
      lines.Append(std::move(line));
    }
    absl::Cord plane(head.SerializeAsString());
    plane.Append(std::move(lines));
    plane.Append(SerializeWithSortedMaps(tail));
    plane.Prepend(HeaderOf(XSpaceField::kPlanes, plane.size()));
    RETURN_IF_ERROR(CheckSize(plane.size(), name));
    for (absl::string_view bytes : plane.Chunks()) RETURN_IF_ERROR(sink.Append(bytes));
    return absl::OkStatus();
  }

 private:
  static std::string HeaderOf(uint32_t field, uint64_t size) {
    std::string header;
    StringOutput output(&header);
    WriteBytesHeader(field, size, &output);
    return header;
  }

  static absl::Status CheckSize(uint64_t size, const std::string& plane) {
    if (size <= kMaxPlaneBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(plane, " is too large for an XSpace; write a Kineto trace (.json.gz)"));
  }

  void AddEvent(EventRow row, PlaneMetadataBuilder* metadata, XEventProto* event) {
    event->set_metadata_id(metadata->GetOrCreateEventMetadata(table_.name(row))->id());
    event->set_offset_ps(table_.start_ps(row) - start_ps_);
    event->set_duration_ps(table_.duration_ps(row));
    WrittenEvent written;
    ReadWrittenEvent(JsonCutter(text_, table_.source_offset(row)).CutValue(), &written);
    if (const std::optional<std::string> category = JsonValue(written.cat).AsString()) {
      XStatProto* stat = event->add_stats();
      stat->set_metadata_id(metadata->GetOrCreateStatMetadata(StatType::kKinetoCategory)->id());
      stat->set_ref_value(metadata->GetOrCreateStatMetadata(*category)->id());
    }
    JsonCutter cutter(written.args);
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const JsonValue value(cutter.CutValue());
      if (!value.exists()) continue;
      XStatProto* stat = event->add_stats();
      stat->set_metadata_id((key == "correlation"
                                 ? metadata->GetOrCreateStatMetadata(StatType::kCorrelationId)
                                 : metadata->GetOrCreateStatMetadata(key))
                                ->id());
      SetValue(value, stat);
    }
  }

  const EventTable& table_;
  const TrackIndex index_;
  const absl::string_view text_;
  // What offsets count from.
  const int64_t start_ps_;
};

}  // namespace

absl::Status WriteKinetoXSpace(const TraceJsonTable& trace, absl::string_view text,
                               const std::string& hostname, ByteSink& sink) {
  const EventTable& table = trace.table;
  // The tracks that have events, by the name of their plane.
  std::map<std::string, std::set<TrackId>> planes;
  int64_t first_ps = 0, last_ps = 0;
  for (EventRow row = 0; row < table.size(); ++row) {
    planes[PlaneNameOf(table.track(table.track_id(row)))].insert(table.track_id(row));
    first_ps = std::min(first_ps, table.start_ps(row));
    last_ps = std::max(last_ps, table.end_ps(row));
  }
  if (last_ps / 2 - first_ps / 2 > kMaxSpanPs / 2 || std::abs(table.base_ns()) > kMaxBaseNs) {
    return InvalidArgument("its times lie too far apart, or too far from 1970, for an XSpace");
  }
  const int64_t start_ns = table.base_ns() + FloorToNs(first_ps);
  PlaneWriter writer(trace, text, FloorToNs(first_ps) * kPsPerNs);
  int64_t id = 0;
  for (const auto& [name, tracks] : planes) {
    RETURN_IF_ERROR(writer.Write(name, tracks, ++id, sink));
  }
  XSpaceProto session;
  if (!hostname.empty()) session.add_hostnames(hostname);
  XPlaneProto& environment = *session.add_planes();
  environment.set_id(++id);
  environment.set_name(std::string(kTaskEnvPlaneName));
  PlaneMetadataBuilder metadata(&environment);
  metadata.SetPlaneStat(StatType::kProfileStartTime, static_cast<uint64_t>(start_ns));
  metadata.SetPlaneStat(StatType::kProfileStopTime,
                        static_cast<uint64_t>(table.base_ns() + FloorToNs(last_ps) + 1));
  return sink.Append(SerializeWithSortedMaps(session));
}

}  // namespace meridian
