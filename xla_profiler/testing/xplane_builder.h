// SPDX-License-Identifier: Apache-2.0
// Write access to XSpace messages in the manner of TSL's builders, with the names of
// xplane_visitor.h. For made-up profiles, which fit in memory.
//
//   XPlaneBuilder plane(space.add_planes());
//   XLineBuilder stream = plane.GetOrCreateLine(7);
//   XEventBuilder event = stream.AddEvent(*plane.GetOrCreateEventMetadata("gemm"));
//   event.SetTimespan(Timespan(/*begin_ps=*/1000, /*duration_ps=*/500));
//
// Builders are views: they own nothing, and the messages must outlive them. A line or event builder
// also needs its plane builder to stay where it is.
#ifndef XLA_PROFILER_TESTING_XPLANE_BUILDER_H_
#define XLA_PROFILER_TESTING_XPLANE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"

namespace meridian {

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

  absl::string_view Name() const { return line_->name(); }
  void SetName(absl::string_view name) { line_->set_name(std::string(name)); }
  void SetNameIfEmpty(absl::string_view name) {
    if (line_->name().empty()) SetName(name);
  }

  // Base of the events' offsets, from the session's start.
  int64_t TimestampNs() const { return line_->timestamp_ns(); }
  // Moves the events along.
  void SetTimestampNs(int64_t timestamp_ns) { line_->set_timestamp_ns(timestamp_ns); }
  // Events keep their time: their offsets change. If one would not fit in int64, that is
  // InvalidArgument and the line stays as it is.
  absl::Status SetTimestampNsAndAdjustEventOffsets(int64_t timestamp_ns);

  size_t NumEvents() const { return line_->events_size(); }

  // Adds an instant at offset 0.
  XEventBuilder AddEvent(const XEventMetadataProto& metadata);

  // Calls fn(XEventBuilder) in the line's order.
  template <typename Fn>
  void ForEachEvent(Fn&& fn) {
    for (XEventProto& event : *line_->mutable_events()) fn(XEventBuilder(&event, plane_));
  }

 private:
  XLineProto* line_;
  XPlaneBuilder* plane_;
};

// A plane. Lines and metadata are found in constant time; metadata entries keep their address.
class XPlaneBuilder : public PlaneMetadataBuilder, public XStatsBuilder<XPlaneProto> {
 public:
  // The plane may have content. Of lines that share an id the first is found.
  explicit XPlaneBuilder(XPlaneProto* plane);

  int64_t Id() const { return plane_->id(); }
  void SetId(int64_t id) { plane_->set_id(id); }

  absl::string_view Name() const { return plane_->name(); }
  void SetName(absl::string_view name) { plane_->set_name(std::string(name)); }

  XLineBuilder GetOrCreateLine(int64_t id);

  // Calls fn(XLineBuilder) in the plane's order.
  template <typename Fn>
  void ForEachLine(Fn&& fn) {
    for (XLineProto& line : *plane_->mutable_lines()) fn(XLineBuilder(&line, this));
  }

 private:
  XPlaneProto* plane_;
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

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_XPLANE_BUILDER_H_
