// Write access to XSpace messages in the manner of TSL's builders, with the names of
// xplane_visitor.h. For spaces that fit in memory; large files are rewritten on the wire.
//
//   XPlaneBuilder plane(space.add_planes());
//   XLineBuilder stream = plane.GetOrCreateLine(7);
//   XEventBuilder event = stream.AddEvent(*plane.GetOrCreateEventMetadata("gemm"));
//   event.SetTimespan(Timespan(/*begin_ps=*/1000, /*duration_ps=*/500));
//
// Builders are views: they own nothing, and the messages must outlive them. A line or event builder
// also needs its plane builder to stay where it is.
#ifndef XLA_PROFILER_XPLANE_XPLANE_BUILDER_H_
#define XLA_PROFILER_XPLANE_XPLANE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

using XSpaceProto = ::tensorflow::profiler::XSpace;
using XPlaneProto = ::tensorflow::profiler::XPlane;
using XLineProto = ::tensorflow::profiler::XLine;
using XEventProto = ::tensorflow::profiler::XEvent;
using XStatProto = ::tensorflow::profiler::XStat;
using XEventMetadataProto = ::tensorflow::profiler::XEventMetadata;
using XStatMetadataProto = ::tensorflow::profiler::XStatMetadata;

class XPlaneBuilder;

// Adds stats to their owner: XEventProto, XEventMetadataProto or XPlaneProto. The metadata of a
// stat, and what it refers to, must be entries of the plane that the owner belongs to.
template <typename Owner>
class XStatsBuilder {
 public:
  XStatsBuilder(Owner* owner, XPlaneBuilder* plane) : owner_(owner), plane_(plane) {}

  // Adds a stat; the owner must not have one of that metadata yet. The value's type decides the
  // slot: unsigned, signed (bool too, as readers expect), double, or string for all that converts
  // to one. An XStatMetadataProto as value makes a reference to it: its name is the value, stored
  // once per plane.
  template <typename Value>
  void AddStatValue(const XStatMetadataProto& metadata, const Value& value);

  // Like AddStatValue, but replaces the value of a stat of that metadata. Linear in the stats.
  template <typename Value>
  void SetOrAddStatValue(const XStatMetadataProto& metadata, const Value& value);

  // For serialized messages and other text that need not be UTF-8.
  void AddBytesValue(const XStatMetadataProto& metadata, absl::string_view bytes);

  // Adds the first that the text can be read as: a signed number, an unsigned number, a finite
  // double; else a reference to the text.
  void ParseAndAddStatValue(const XStatMetadataProto& metadata, absl::string_view text);

  // Adds a copy of a stat of another plane under this plane's metadata. `resolve` returns the name
  // of the other plane's stat metadata with that id; it is called if the stat is a reference:
  //
  //   event.AddStat(metadata, stat, [&](int64_t id) { return other.stat_metadata().at(id).name();
  //   });
  template <typename Resolve>
  void AddStat(const XStatMetadataProto& metadata, const XStatProto& stat, Resolve resolve);

 private:
  XStatProto* NewStat(const XStatMetadataProto& metadata);
  XStatProto* FindOrAddStat(const XStatMetadataProto& metadata);

  Owner* owner_;
  XPlaneBuilder* plane_;
};

extern template class XStatsBuilder<XEventProto>;
extern template class XStatsBuilder<XEventMetadataProto>;
extern template class XStatsBuilder<XPlaneProto>;

// An event of a line.
class XEventBuilder : public XStatsBuilder<XEventProto> {
 public:
  XEventBuilder(XEventProto* event, XPlaneBuilder* plane)
      : XStatsBuilder(event, plane), event_(event) {}

  // Start, from the line's TimestampNs.
  int64_t OffsetPs() const { return event_->offset_ps(); }
  int64_t DurationPs() const { return event_->duration_ps(); }

  void SetOffsetPs(int64_t offset_ps) { event_->set_offset_ps(offset_ps); }
  void SetDurationPs(int64_t duration_ps) { event_->set_duration_ps(duration_ps); }

  // The timespan begins at the line's TimestampNs.
  void SetTimespan(const Timespan& timespan) {
    SetOffsetPs(timespan.begin_ps());
    SetDurationPs(timespan.duration_ps());
  }

  // Makes it an aggregated event, which stands for several and has no start.
  void SetNumOccurrences(int64_t num_occurrences) { event_->set_num_occurrences(num_occurrences); }

 private:
  XEventProto* event_;
};

// A line (thread, stream) of a plane.
class XLineBuilder {
 public:
  XLineBuilder(XLineProto* line, XPlaneBuilder* plane) : line_(line), plane_(plane) {}

  int64_t Id() const { return line_->id(); }
  // Does not change which id the plane builder finds the line by.
  void SetId(int64_t id) { line_->set_id(id); }

  absl::string_view Name() const { return line_->name(); }
  void SetName(absl::string_view name) { line_->set_name(std::string(name)); }
  void SetNameIfEmpty(absl::string_view name) {
    if (line_->name().empty()) SetName(name);
  }
  void SetDisplayName(absl::string_view name) { line_->set_display_name(std::string(name)); }

  // Base of the events' offsets, from the session's start.
  int64_t TimestampNs() const { return line_->timestamp_ns(); }
  // Moves the events along.
  void SetTimestampNs(int64_t timestamp_ns) { line_->set_timestamp_ns(timestamp_ns); }
  // Events keep their time: their offsets change. If one would not fit in int64, that is
  // InvalidArgument and the line stays as it is.
  absl::Status SetTimestampNsAndAdjustEventOffsets(int64_t timestamp_ns);

  void SetDurationPs(int64_t duration_ps) { line_->set_duration_ps(duration_ps); }

  size_t NumEvents() const { return line_->events_size(); }
  void ReserveEvents(size_t num_events) { line_->mutable_events()->Reserve(num_events); }

  // Adds an instant at offset 0.
  XEventBuilder AddEvent(const XEventMetadataProto& metadata);

  // Calls fn(XEventBuilder) in the line's order.
  template <typename Fn>
  void ForEachEvent(Fn&& fn) {
    for (XEventProto& event : *line_->mutable_events()) fn(XEventBuilder(&event, plane_));
  }

  // Calls fn(int64_t* offset_ps, int64_t* duration_ps), which may change both, for each event that
  // has a start, in the line's order.
  template <typename Fn>
  void RewriteTimes(Fn&& fn);

 private:
  XLineProto* line_;
  XPlaneBuilder* plane_;
};

// Returns InvalidArgument when SetTimestampNsAndAdjustEventOffsets would.
absl::Status CheckEventOffsetsFit(const XLineProto& line, int64_t timestamp_ns);

// A plane. Lines and metadata are found in constant time; metadata entries keep their address.
class XPlaneBuilder : public XStatsBuilder<XPlaneProto> {
 public:
  // The plane may have content. Costs time and memory in proportion to its lines and metadata; an
  // entry whose `id` is not its key gets the key's. Of lines that share an id the first is found,
  // of entries that share a name the one with the smallest id.
  explicit XPlaneBuilder(XPlaneProto* plane);

  XPlaneBuilder(const XPlaneBuilder&) = delete;
  XPlaneBuilder& operator=(const XPlaneBuilder&) = delete;

  int64_t Id() const { return plane_->id(); }
  void SetId(int64_t id) { plane_->set_id(id); }

  absl::string_view Name() const { return plane_->name(); }
  void SetName(absl::string_view name) { plane_->set_name(std::string(name)); }

  void ReserveLines(size_t num_lines) { plane_->mutable_lines()->Reserve(num_lines); }
  XLineBuilder GetOrCreateLine(int64_t id);

  // Calls fn(XLineBuilder) in the plane's order.
  template <typename Fn>
  void ForEachLine(Fn&& fn) {
    for (XLineProto& line : *plane_->mutable_lines()) fn(XLineBuilder(&line, this));
  }

  // New entries get the id after the largest, or, when that is the last int64, a free one. An entry
  // made without a name is not found by one that it is given later.
  XEventMetadataProto* CreateEventMetadata();
  XStatMetadataProto* CreateStatMetadata();
  XEventMetadataProto* GetOrCreateEventMetadata(int64_t id);
  XEventMetadataProto* GetOrCreateEventMetadata(absl::string_view name);
  XStatMetadataProto* GetOrCreateStatMetadata(int64_t id);
  XStatMetadataProto* GetOrCreateStatMetadata(absl::string_view name);
  XStatMetadataProto* GetOrCreateStatMetadata(StatType type) {
    return GetOrCreateStatMetadata(StatTypeName(type));
  }

 private:
  XPlaneProto* plane_;
  int64_t last_event_metadata_id_ = 0;
  int64_t last_stat_metadata_id_ = 0;
  absl::flat_hash_map<std::string, XEventMetadataProto*> event_metadata_by_name_;
  absl::flat_hash_map<std::string, XStatMetadataProto*> stat_metadata_by_name_;
  absl::flat_hash_map<int64_t, XLineProto*> lines_by_id_;
};

// Implementation only below.

namespace internal {

template <typename Value>
void SetStatValue(const Value& value, XStatProto* stat) {
  if constexpr (std::is_same_v<Value, XStatMetadataProto>) {
    stat->set_ref_value(static_cast<uint64_t>(value.id()));
  } else if constexpr (std::is_floating_point_v<Value>) {
    stat->set_double_value(value);
  } else if constexpr (std::is_same_v<Value, bool> || std::is_signed_v<Value>) {
    stat->set_int64_value(value);
  } else if constexpr (std::is_unsigned_v<Value>) {
    stat->set_uint64_value(value);
  } else {
    stat->set_str_value(std::string(value));
  }
}

}  // namespace internal

template <typename Owner>
template <typename Value>
void XStatsBuilder<Owner>::AddStatValue(const XStatMetadataProto& metadata, const Value& value) {
  internal::SetStatValue(value, NewStat(metadata));
}

template <typename Owner>
template <typename Value>
void XStatsBuilder<Owner>::SetOrAddStatValue(const XStatMetadataProto& metadata,
                                             const Value& value) {
  internal::SetStatValue(value, FindOrAddStat(metadata));
}

template <typename Owner>
template <typename Resolve>
void XStatsBuilder<Owner>::AddStat(const XStatMetadataProto& metadata, const XStatProto& stat,
                                   Resolve resolve) {
  XStatProto* copy = owner_->add_stats();
  *copy = stat;
  copy->set_metadata_id(metadata.id());
  if (stat.has_ref_value()) {
    const auto id = static_cast<int64_t>(stat.ref_value());
    internal::SetStatValue(*plane_->GetOrCreateStatMetadata(resolve(id)), copy);
  }
}

template <typename Fn>
void XLineBuilder::RewriteTimes(Fn&& fn) {
  for (XEventProto& event : *line_->mutable_events()) {
    if (event.has_num_occurrences()) continue;
    int64_t offset_ps = event.offset_ps();
    int64_t duration_ps = event.duration_ps();
    fn(&offset_ps, &duration_ps);
    event.set_offset_ps(offset_ps);
    event.set_duration_ps(duration_ps);
  }
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_BUILDER_H_
