#include "xla_profiler/xplane/xplane_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/map.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min();

template <typename Metadata>
using MetadataById = google::protobuf::Map<int64_t, Metadata>;
template <typename Metadata>
using MetadataByName = absl::flat_hash_map<std::string, Metadata*>;

// Enters what the plane already has.
template <typename Metadata>
void Index(MetadataById<Metadata>* by_id, MetadataByName<Metadata>* by_name, int64_t* last_id) {
  by_name->reserve(by_id->size());
  for (auto& [id, metadata] : *by_id) {
    metadata.set_id(id);
    *last_id = std::max(*last_id, id);
    Metadata*& named = (*by_name)[metadata.name()];
    if (named == nullptr || id < named->id()) named = &metadata;
  }
}

// Returns an id that no entry has. Past the last int64 the search goes on from 1.
template <typename Metadata>
int64_t FreeId(const MetadataById<Metadata>& by_id, int64_t last_id) {
  do {
    last_id = last_id == kMaxInt64 ? 1 : last_id + 1;
  } while (by_id.contains(last_id));
  return last_id;
}

template <typename Metadata>
Metadata* Create(MetadataById<Metadata>* by_id, int64_t* last_id) {
  *last_id = FreeId(*by_id, *last_id);
  Metadata* metadata = &(*by_id)[*last_id];
  metadata->set_id(*last_id);
  return metadata;
}

template <typename Metadata>
Metadata* GetOrCreate(int64_t id, MetadataById<Metadata>* by_id, int64_t* last_id) {
  *last_id = std::max(*last_id, id);
  Metadata* metadata = &(*by_id)[id];
  metadata->set_id(id);
  return metadata;
}

template <typename Metadata>
Metadata* GetOrCreate(absl::string_view name, MetadataById<Metadata>* by_id,
                      MetadataByName<Metadata>* by_name, int64_t* last_id) {
  Metadata*& metadata = (*by_name)[name];
  if (metadata == nullptr) {
    metadata = Create(by_id, last_id);
    metadata->set_name(std::string(name));
  }
  return metadata;
}

// What an event's offset becomes when the line's base moves and the event does not.
absl::int128 MovedOffsetPs(const XLineProto& line, const XEventProto& event, int64_t timestamp_ns) {
  return (absl::int128(line.timestamp_ns()) - timestamp_ns) * 1000 + event.offset_ps();
}

}  // namespace

template <typename Owner>
void XStatsBuilder<Owner>::AddBytesValue(const XStatMetadataProto& metadata,
                                         absl::string_view bytes) {
  NewStat(metadata)->set_bytes_value(std::string(bytes));
}

template <typename Owner>
void XStatsBuilder<Owner>::ParseAndAddStatValue(const XStatMetadataProto& metadata,
                                                absl::string_view text) {
  int64_t signed_value;
  uint64_t unsigned_value;
  double double_value;
  if (absl::SimpleAtoi(text, &signed_value)) {
    AddStatValue(metadata, signed_value);
  } else if (absl::SimpleAtoi(text, &unsigned_value)) {
    AddStatValue(metadata, unsigned_value);
  } else if (absl::SimpleAtod(text, &double_value) && std::isfinite(double_value)) {
    AddStatValue(metadata, double_value);
  } else {
    AddStatValue(metadata, *plane_->GetOrCreateStatMetadata(text));
  }
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
  RETURN_IF_ERROR(CheckEventOffsetsFit(*line_, timestamp_ns));
  for (XEventProto& event : *line_->mutable_events()) {
    if (event.has_num_occurrences()) continue;
    event.set_offset_ps(static_cast<int64_t>(MovedOffsetPs(*line_, event, timestamp_ns)));
  }
  line_->set_timestamp_ns(timestamp_ns);
  return absl::OkStatus();
}

absl::Status CheckEventOffsetsFit(const XLineProto& line, int64_t timestamp_ns) {
  for (const XEventProto& event : line.events()) {
    if (event.has_num_occurrences()) continue;
    const absl::int128 offset_ps = MovedOffsetPs(line, event, timestamp_ns);
    if (offset_ps < kMinInt64 || offset_ps > kMaxInt64) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line.id(), " \"", line.name(), "\": an event at timestamp_ns ",
          line.timestamp_ns(), ", offset_ps ", event.offset_ps(), " is too far from timestamp_ns ",
          timestamp_ns, " for an offset in picoseconds"));
    }
  }
  return absl::OkStatus();
}

XPlaneBuilder::XPlaneBuilder(XPlaneProto* plane) : XStatsBuilder(plane, this), plane_(plane) {
  Index(plane_->mutable_event_metadata(), &event_metadata_by_name_, &last_event_metadata_id_);
  Index(plane_->mutable_stat_metadata(), &stat_metadata_by_name_, &last_stat_metadata_id_);
  lines_by_id_.reserve(plane_->lines_size());
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

XEventMetadataProto* XPlaneBuilder::CreateEventMetadata() {
  return Create(plane_->mutable_event_metadata(), &last_event_metadata_id_);
}

XStatMetadataProto* XPlaneBuilder::CreateStatMetadata() {
  return Create(plane_->mutable_stat_metadata(), &last_stat_metadata_id_);
}

XEventMetadataProto* XPlaneBuilder::GetOrCreateEventMetadata(int64_t id) {
  return GetOrCreate(id, plane_->mutable_event_metadata(), &last_event_metadata_id_);
}

XEventMetadataProto* XPlaneBuilder::GetOrCreateEventMetadata(absl::string_view name) {
  return GetOrCreate(name, plane_->mutable_event_metadata(), &event_metadata_by_name_,
                     &last_event_metadata_id_);
}

XStatMetadataProto* XPlaneBuilder::GetOrCreateStatMetadata(int64_t id) {
  return GetOrCreate(id, plane_->mutable_stat_metadata(), &last_stat_metadata_id_);
}

XStatMetadataProto* XPlaneBuilder::GetOrCreateStatMetadata(absl::string_view name) {
  return GetOrCreate(name, plane_->mutable_stat_metadata(), &stat_metadata_by_name_,
                     &last_stat_metadata_id_);
}

}  // namespace meridian
