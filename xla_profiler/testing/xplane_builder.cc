#include "xla_profiler/testing/xplane_builder.h"

#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {

template <typename Owner>
void XStatsBuilder<Owner>::AddBytesValue(const XStatMetadataProto& metadata,
                                         absl::string_view bytes) {
  NewStat(metadata)->set_bytes_value(std::string(bytes));
}

template <typename Owner>
XStatProto* XStatsBuilder<Owner>::NewStat(const XStatMetadataProto& metadata) {
  XStatProto* stat = owner_->add_stats();
  stat->set_metadata_id(metadata.id());
  return stat;
}

template <typename Owner>
XStatProto* XStatsBuilder<Owner>::FindOrAddStat(const XStatMetadataProto& metadata) {
  for (XStatProto& stat : *owner_->mutable_stats()) {
    if (stat.metadata_id() == metadata.id()) return &stat;
  }
  return NewStat(metadata);
}

template class XStatsBuilder<XEventProto>;
template class XStatsBuilder<XEventMetadataProto>;
template class XStatsBuilder<XPlaneProto>;

XEventBuilder XLineBuilder::AddEvent(const XEventMetadataProto& metadata) {
  XEventProto* event = line_->add_events();
  event->set_metadata_id(metadata.id());
  // Readers tell an event at offset 0 from an aggregated one by the member that is set.
  event->set_offset_ps(0);
  return XEventBuilder(event, plane_);
}

absl::Status XLineBuilder::SetTimestampNsAndAdjustEventOffsets(int64_t timestamp_ns) {
  std::vector<int64_t> offsets_ps;
  for (const XEventProto& event : line_->events()) {
    const absl::int128 moved_ps =
        (absl::int128(line_->timestamp_ns()) - timestamp_ns) * kPsPerNs + event.offset_ps();
    const std::optional<int64_t> offset_ps = NarrowToInt64(moved_ps);
    if (!offset_ps.has_value() && !event.has_num_occurrences()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line_->id(), " \"", line_->name(), "\": an event at timestamp_ns ",
          line_->timestamp_ns(), ", offset_ps ", event.offset_ps(),
          " is too far from timestamp_ns ", timestamp_ns, " for an offset in picoseconds"));
    }
    offsets_ps.push_back(offset_ps.value_or(0));
  }
  for (int i = 0; i < line_->events_size(); ++i) {
    XEventProto& event = *line_->mutable_events(i);
    if (!event.has_num_occurrences()) event.set_offset_ps(offsets_ps[i]);
  }
  line_->set_timestamp_ns(timestamp_ns);
  return absl::OkStatus();
}

XPlaneBuilder::XPlaneBuilder(XPlaneProto* plane)
    : PlaneMetadataBuilder(plane), XStatsBuilder(plane, this), plane_(plane) {
  for (XLineProto& line : *plane_->mutable_lines()) lines_by_id_.try_emplace(line.id(), &line);
}

XLineBuilder XPlaneBuilder::GetOrCreateLine(int64_t id) {
  XLineProto*& line = lines_by_id_[id];
  if (line == nullptr) {
    line = plane_->add_lines();
    line->set_id(id);
  }
  return XLineBuilder(line, this);
}

}  // namespace meridian
