// SPDX-License-Identifier: Apache-2.0
// Read access to the planes of a serialized XSpace, in the manner of TSL's visitors but straight
// from the wire: nothing is copied, an event is decoded when it is its turn.
//
//   ASSIGN_OR_RETURN(const XPlaneVisitor plane, XPlaneVisitor::Create(source, layout.planes[0]));
//   RETURN_IF_ERROR(plane.ForEachLine([&](const XLineVisitor& line) {
//     return line.ForEachEvent([&](const XEventVisitor& event) {
//       if (auto stat = event.GetStat(StatType::kCorrelationId)) Use(event.Name(), *stat);
//     });
//   }));
//
// Callbacks of ForEach* return nothing, or an absl::Status that stops the walk when it is not OK.
// Everything a visitor hands out points into the source's bytes and the plane visitor; a line or
// event visitor is valid only within its callback.
#ifndef XLA_PROFILER_XPLANE_XPLANE_VISITOR_H_
#define XLA_PROFILER_XPLANE_XPLANE_VISITOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/xplane/metadata_table.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

struct XStatMetadata {
  int64_t id = 0;
  absl::string_view name;
  // Set when the schema knows the name.
  std::optional<StatType> type;
};

// One stat of an event, an event metadata or a plane.
class XStatVisitor {
 public:
  // Numbered as the fields that hold them.
  enum class ValueCase : uint32_t {
    kNone = 0,
    kDouble = XStatField::kDouble,
    kUint64 = XStatField::kUint64,
    kInt64 = XStatField::kInt64,
    kStr = XStatField::kStr,
    kBytes = XStatField::kBytes,
    kRef = XStatField::kRef,
  };

  int64_t Id() const { return id_; }

  // Empty for a plane's stat whose id has no metadata; some writers use such ids as data.
  absl::string_view Name() const {
    return metadata_ == nullptr ? absl::string_view() : metadata_->name;
  }
  std::optional<StatType> Type() const {
    return metadata_ == nullptr ? std::nullopt : metadata_->type;
  }

  ValueCase value_case() const { return value_case_; }

  // The value when the case is the one named, else 0 or empty.
  int64_t IntValue() const { return value_case_ == ValueCase::kInt64 ? AsInt() : 0; }
  uint64_t UintValue() const { return value_case_ == ValueCase::kUint64 ? scalar_ : 0; }
  double DoubleValue() const;
  absl::string_view BytesValue() const {
    return value_case_ == ValueCase::kBytes ? text_ : absl::string_view();
  }

  // The number of a signed or unsigned stat (writers use either), else nullopt. Unsigned values of
  // 2^63 and more come out negative: they are ids, not quantities.
  std::optional<int64_t> IntOrUintValue() const {
    if (value_case_ != ValueCase::kInt64 && value_case_ != ValueCase::kUint64) return std::nullopt;
    return AsInt();
  }

  // The text of a string stat or of the interned string that a reference names, else empty.
  absl::string_view StrOrRefValue() const {
    return value_case_ == ValueCase::kStr || value_case_ == ValueCase::kRef ? text_
                                                                            : absl::string_view();
  }

 private:
  friend class XStatDecoder;

  int64_t AsInt() const { return static_cast<int64_t>(scalar_); }

  const XStatMetadata* metadata_ = nullptr;
  int64_t id_ = 0;
  ValueCase value_case_ = ValueCase::kNone;
  // The number, the double's bits, or the reference's id.
  uint64_t scalar_ = 0;
  absl::string_view text_;
};

struct XEventMetadata {
  int64_t id = 0;
  absl::string_view name;
  absl::string_view display_name;
  // Stats that all events of this metadata share.
  std::vector<XStatVisitor> stats;
};

// Returns the first stat of that type, or nullptr. Linear in the number of stats.
const XStatVisitor* FindStat(absl::Span<const XStatVisitor> stats, StatType type);

// Some types of stats of events. Walking the events for these alone is cheaper; the others are checked
// all the same.
class StatSelection {
 public:
  explicit StatSelection(std::initializer_list<StatType> types) {
    for (const StatType type : types) bits_ |= uint64_t{1} << static_cast<int>(type);
  }
  StatSelection operator|(const StatSelection& other) const {
    StatSelection both(*this);
    both.bits_ |= other.bits_;
    return both;
  }
  bool Contains(std::optional<StatType> type) const {
    return type.has_value() && (bits_ >> static_cast<int>(*type) & 1) != 0;
  }

 private:
  static_assert(kNumStatTypes <= 64);
  uint64_t bits_ = 0;
};

// An event of a line.
class XEventVisitor {
 public:
  int64_t Id() const { return metadata_->id; }
  absl::string_view Name() const { return metadata_->name; }
  const XEventMetadata& Metadata() const { return *metadata_; }

  // Start, from the line's TimestampNs.
  int64_t OffsetPs() const { return offset_ps_; }
  int64_t DurationPs() const { return duration_ps_; }

  // An aggregated event stands for several and has no start.
  bool IsAggregatedEvent() const { return is_aggregated_; }

  // The event's own stats, without those of its metadata.
  absl::Span<const XStatVisitor> Stats() const { return {stats_.data(), num_stats_}; }

  // Returns the event's own stat of that type, or nullptr. Linear in the number of stats.
  const XStatVisitor* GetStat(StatType type) const;

  // Like GetStat, but looks at the metadata's stats first.
  const XStatVisitor* GetEventOrMetadataStat(StatType type) const;

  // True when the event is written in the form of event_wire.h, its stats in any form.
  bool IsPlain() const { return is_plain_; }

  // Where the event's bytes begin in the file.
  uint64_t FileOffset() const { return file_offset_; }

 private:
  friend class XLineVisitor;
  friend class XPlaneVisitor;

  // All stats are decoded when there is no selection.
  XEventVisitor(const class XPlaneVisitor* plane, const StatSelection* selection)
      : plane_(plane), selection_(selection) {}
  // Returns false and sets the error when the event is damaged.
  bool Decode(absl::string_view payload, absl::Status* error);
  // The short cut of event_wire.h; false when it does not apply.
  bool DecodePlain(absl::string_view payload, int64_t* metadata_id);
  bool DecodeAny(absl::string_view payload, int64_t* metadata_id, absl::Status* error);
  absl::Status UndefinedMetadata(absl::string_view payload, int64_t metadata_id) const;

  const class XPlaneVisitor* plane_;
  const StatSelection* selection_;
  const XEventMetadata* metadata_ = nullptr;
  int64_t offset_ps_ = 0;
  int64_t duration_ps_ = 0;
  bool is_aggregated_ = false;
  bool is_plain_ = false;
  uint64_t file_offset_ = 0;
  // A buffer that grows with the largest event; only the first num_stats_ are this event's.
  std::vector<XStatVisitor> stats_;
  size_t num_stats_ = 0;
};

// A line (thread, stream) of a plane.
class XLineVisitor {
 public:
  XLineVisitor(const XPlaneVisitor* plane, const XLineHeader& header)
      : plane_(plane), header_(header) {}

  int64_t Id() const { return header_.id; }
  absl::string_view Name() const { return header_.name; }
  absl::string_view DisplayName() const {
    return header_.display_name.empty() ? header_.name : header_.display_name;
  }
  // Base of the events' offsets, from the session's start.
  int64_t TimestampNs() const { return header_.timestamp_ns; }
  uint64_t NumEvents() const { return header_.num_events; }
  const XLineHeader& Header() const { return header_; }

  // In file order.
  template <typename Fn>
  absl::Status ForEachEvent(Fn&& fn) const;

  // The same for a caller who looks at selected stats only. Of the others, some are not handed out.
  template <typename Fn>
  absl::Status ForEachEvent(const StatSelection& selection, Fn&& fn) const;

  // In the order of the payloads, which are those of this line's events (see WalkXLine).
  template <typename Fn>
  absl::Status ForEachEvent(absl::Span<const absl::string_view> payloads, Fn&& fn) const;

 private:
  template <typename Fn>
  absl::Status WalkEvents(const StatSelection* selection, Fn& fn) const;

  const XPlaneVisitor* plane_;
  XLineHeader header_;
};

// A plane with its metadata decoded. Costs memory in proportion to the metadata, not the events.
class XPlaneVisitor {
 public:
  // An id that two metadata entries share, or that an event or reference names and no entry has, is
  // an error: "offset N: event metadata id 7 occurs twice". `source` must outlive the visitor.
  static absl::StatusOr<XPlaneVisitor> Create(const XSpaceSource& source, absl::string_view plane);

  // The same under another name, or with some of its lines only. What is given must outlive the
  // visitor.
  void Rename(absl::string_view name) { layout_.name = name; }
  void KeepLines(std::vector<absl::string_view> lines) { layout_.lines = std::move(lines); }

  XPlaneVisitor(XPlaneVisitor&&) = default;
  XPlaneVisitor& operator=(XPlaneVisitor&&) = default;

  int64_t Id() const { return layout_.id; }
  absl::string_view Name() const { return layout_.name; }
  size_t NumLines() const { return layout_.lines.size(); }

  // In file order.
  template <typename Fn>
  absl::Status ForEachLine(Fn&& fn) const;

  // Checks the events of all lines: fails as a walk over all of them would.
  absl::Status CheckEvents() const;

  // Reads a line's header and, in the same walk, checks its events and hands out their times: fn
  // gets an event whose stats are unknown. The header is whole only after the walk.
  template <typename Fn>
  absl::Status WalkTimes(absl::string_view line, XLineHeader* header, Fn&& fn) const;

  absl::Span<const XStatVisitor> Stats() const { return stats_; }
  // Returns the plane's own stat of that type, or nullptr.
  const XStatVisitor* GetStat(StatType type) const;

  // In file order.
  const std::vector<XEventMetadata>& EventMetadata() const { return event_metadata_.entries(); }
  const std::vector<XStatMetadata>& StatMetadata() const { return stat_metadata_.entries(); }

  // Returns nullptr when there is none.
  const XEventMetadata* GetEventMetadata(int64_t id) const { return event_metadata_.Find(id); }
  const XStatMetadata* GetStatMetadata(int64_t id) const { return stat_metadata_.Find(id); }

  const XSpaceSource& Source() const { return *source_; }
  const XPlaneLayout& Layout() const { return layout_; }

 private:
  friend class XEventVisitor;

  explicit XPlaneVisitor(const XSpaceSource* source) : source_(source) {}
  absl::Status DecodeStatMetadata();
  absl::Status DecodeEventMetadata();
  absl::Status DecodeStats();

  const XSpaceSource* source_;
  XPlaneLayout layout_;
  MetadataTable<XStatMetadata> stat_metadata_;
  MetadataTable<XEventMetadata> event_metadata_;
  std::vector<XStatVisitor> stats_;
};

// Implementation only below.

namespace internal {

// Calls fn; returns false and sets the error when it returns one.
template <typename Fn, typename Argument>
bool CallVisitor(Fn& fn, const Argument& argument, absl::Status* error) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn&, const Argument&>>) {
    fn(argument);
    return true;
  } else {
    *error = fn(argument);
    return error->ok();
  }
}

}  // namespace internal

template <typename Fn>
absl::Status XPlaneVisitor::ForEachLine(Fn&& fn) const {
  absl::Status error;
  for (absl::string_view line : layout_.lines) {
    ASSIGN_OR_RETURN(const XLineHeader header, ReadXLineHeader(*source_, line));
    if (!internal::CallVisitor(fn, XLineVisitor(this, header), &error)) return error;
    source_->Forget(line);
  }
  return absl::OkStatus();
}

template <typename Fn>
absl::Status XPlaneVisitor::WalkTimes(absl::string_view line, XLineHeader* header, Fn&& fn) const {
  const StatSelection nothing(std::initializer_list<StatType>{});
  XEventVisitor event(this, &nothing);
  absl::Status error;
  return WalkXLine(*source_, line, header, [&](absl::string_view payload) {
    if (ABSL_PREDICT_TRUE(event.Decode(payload, &error))) fn(event);
    return error;
  });
}

template <typename Fn>
absl::Status XLineVisitor::ForEachEvent(Fn&& fn) const {
  return WalkEvents(nullptr, fn);
}

template <typename Fn>
absl::Status XLineVisitor::ForEachEvent(const StatSelection& selection, Fn&& fn) const {
  return WalkEvents(&selection, fn);
}

template <typename Fn>
absl::Status XLineVisitor::WalkEvents(const StatSelection* selection, Fn& fn) const {
  XEventVisitor event(plane_, selection);
  absl::Status error;
  ForgettingWalk walk(header_.payload);
  WireReader reader(header_.payload, plane_->Source().origin(), kXLineDepth);
  WireField field;
  while (reader.Next(&field)) {
    walk.Reach(field.raw.data());
    if (!field.IsBytes(XLineField::kEvents)) continue;
    if (ABSL_PREDICT_FALSE(!event.Decode(field.bytes, &error))) return error;
    if (!internal::CallVisitor(fn, event, &error)) return error;
  }
  return reader.status();
}

template <typename Fn>
absl::Status XLineVisitor::ForEachEvent(absl::Span<const absl::string_view> payloads,
                                        Fn&& fn) const {
  XEventVisitor event(plane_, nullptr);
  absl::Status error;
  for (absl::string_view payload : payloads) {
    if (!event.Decode(payload, &error)) return error;
    if (!internal::CallVisitor(fn, event, &error)) return error;
  }
  return absl::OkStatus();
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_VISITOR_H_
