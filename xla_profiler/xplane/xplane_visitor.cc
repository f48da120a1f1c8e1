#include "xla_profiler/xplane/xplane_visitor.h"

#include <cstring>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/xplane/event_wire.h"

namespace meridian {

const XStatVisitor* FindStat(absl::Span<const XStatVisitor> stats, StatType type) {
  for (const XStatVisitor& stat : stats) {
    if (stat.Type() == type) return &stat;
  }
  return nullptr;
}

// Decodes stats of one plane. Functions return false and set the error if they fail: a Status
// passed through every call would cost more than the decoding. What is rare is kept out of line, so
// that the way of the many stays short.
class XStatDecoder {
 public:
  XStatDecoder(const XSpaceSource& source, const MetadataTable<XStatMetadata>& metadata, int depth)
      : source_(source), metadata_(metadata), depth_(depth) {}

  // Overwrites the stat. The id it refers to must have metadata; its own id need not.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Decode(absl::string_view payload, XStatVisitor* stat,
                                           absl::Status* error) const {
    if (ABSL_PREDICT_FALSE(!DecodePlain(payload, stat)) && !DecodeAny(payload, stat, error)) {
      return false;
    }
    stat->metadata_ = metadata_.Find(stat->id_);
    if (stat->value_case_ != ValueCase::kRef) return true;
    const XStatMetadata* referred = metadata_.Find(stat->AsInt());
    if (ABSL_PREDICT_FALSE(referred == nullptr)) return FailUndefined(payload, stat, true, error);
    stat->text_ = referred->name;
    return true;
  }

  // Like Decode, but the stat's own id must have metadata too.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool DecodeDefined(absl::string_view payload, XStatVisitor* stat,
                                                  absl::Status* error) const {
    if (ABSL_PREDICT_FALSE(!Decode(payload, stat, error))) return false;
    if (ABSL_PREDICT_TRUE(stat->metadata_ != nullptr)) return true;
    return FailUndefined(payload, stat, false, error);
  }

 private:
  using ValueCase = XStatVisitor::ValueCase;

  // The short cut of event_wire.h. Returns false when the stat has another form.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool DecodePlain(absl::string_view payload,
                                                XStatVisitor* stat) const {
    PlainStat plain;
    if (!HasRoomBehind(payload.data() + payload.size(), source_) ||
        !ReadPlainStat(payload, &plain)) {
      return false;
    }
    stat->id_ = plain.id;
    stat->value_case_ = static_cast<ValueCase>(plain.number);
    stat->scalar_ = plain.scalar;
    stat->text_ = plain.text;
    return true;
  }

  ABSL_ATTRIBUTE_NOINLINE bool DecodeAny(absl::string_view payload, XStatVisitor* stat,
                                         absl::Status* error) const {
    *stat = XStatVisitor();
    WireReader reader(payload, source_.origin(), depth_);
    WireField field;
    while (reader.Next(&field)) {
      if (field.IsVarint(XStatField::kMetadataId)) {
        stat->id_ = static_cast<int64_t>(field.scalar);
      } else if (field.IsVarint(XStatField::kUint64) || field.IsVarint(XStatField::kInt64) ||
                 field.IsVarint(XStatField::kRef) ||
                 (field.number == XStatField::kDouble && field.type == WireType::kFixed64)) {
        stat->value_case_ = static_cast<ValueCase>(field.number);
        stat->scalar_ = field.scalar;
      } else if (field.IsBytes(XStatField::kStr)) {
        *error = ReadText(field.bytes, source_.origin(), &stat->text_);
        if (!error->ok()) return false;
        stat->value_case_ = ValueCase::kStr;
      } else if (field.IsBytes(XStatField::kBytes)) {
        stat->text_ = field.bytes;
        stat->value_case_ = ValueCase::kBytes;
      }
    }
    if (!reader.failed()) return true;
    *error = reader.status();
    return false;
  }

  ABSL_ATTRIBUTE_NOINLINE bool FailUndefined(absl::string_view payload, const XStatVisitor* stat,
                                             bool reference, absl::Status* error) const {
    *error = WireError(payload.data(), source_.origin(),
                       reference ? absl::StrCat("a stat refers to stat metadata id ", stat->scalar_,
                                                ", which is not defined in its plane")
                                 : absl::StrCat("stat metadata id ", stat->id_,
                                                " is used but not defined in its plane"));
    return false;
  }

  const XSpaceSource& source_;
  const MetadataTable<XStatMetadata>& metadata_;
  const int depth_;
};

double XStatVisitor::DoubleValue() const {
  if (value_case_ != ValueCase::kDouble) return 0;
  double value;
  std::memcpy(&value, &scalar_, sizeof(value));
  return value;
}

const XStatVisitor* XEventVisitor::GetStat(StatType type) const { return FindStat(Stats(), type); }

const XStatVisitor* XEventVisitor::GetEventOrMetadataStat(StatType type) const {
  const XStatVisitor* stat = FindStat(metadata_->stats, type);
  return stat != nullptr ? stat : GetStat(type);
}

ABSL_ATTRIBUTE_NOINLINE absl::Status XEventVisitor::UndefinedMetadata(absl::string_view payload,
                                                                      int64_t metadata_id) const {
  return WireError(
      payload.data(), plane_->Source().origin(),
      absl::StrCat("event metadata id ", metadata_id, " is used but not defined in its plane"));
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool XEventVisitor::DecodePlain(absl::string_view payload,
                                                                    int64_t* metadata_id) {
  PlainEvent event;
  if (!ReadPlainEvent(payload, plane_->Source(), &event)) return false;
  const XStatDecoder stat_decoder(plane_->Source(), plane_->stat_metadata_, kXEventDepth - 1);
  const char* end = payload.data() + payload.size();
  absl::Status ignored;
  num_stats_ = 0;
  for (const char* p = event.stats; p != end;) {
    absl::string_view stat;
    p = NextPlainStat(p, end, &stat);
    if (ABSL_PREDICT_FALSE(num_stats_ == stats_.size())) stats_.emplace_back();
    XStatVisitor* decoded = &stats_[num_stats_];
    // An error is found again, and reported, on the long way.
    if (ABSL_PREDICT_FALSE(p == nullptr || !stat_decoder.DecodeDefined(stat, decoded, &ignored))) {
      return false;
    }
    if (selection_ != nullptr && !selection_->Contains(decoded->Type())) continue;
    if (ABSL_PREDICT_FALSE(num_stats_ == plane_->Source().limits.max_stats_per_event)) return false;
    ++num_stats_;
  }
  *metadata_id = event.metadata_id;
  offset_ps_ = event.offset_ps;
  duration_ps_ = event.duration_ps;
  is_aggregated_ = false;
  return true;
}

bool XEventVisitor::Decode(absl::string_view payload, absl::Status* error) {
  file_offset_ = payload.data() - plane_->Source().origin();
  int64_t metadata_id = 0;
  is_plain_ = DecodePlain(payload, &metadata_id);
  if (ABSL_PREDICT_FALSE(!is_plain_) && !DecodeAny(payload, &metadata_id, error)) return false;
  metadata_ = plane_->GetEventMetadata(metadata_id);
  if (ABSL_PREDICT_TRUE(metadata_ != nullptr)) return true;
  *error = UndefinedMetadata(payload, metadata_id);
  return false;
}

ABSL_ATTRIBUTE_NOINLINE bool XEventVisitor::DecodeAny(absl::string_view payload,
                                                      int64_t* metadata_id, absl::Status* error) {
  const XSpaceSource& source = plane_->Source();
  const XStatDecoder stat_decoder(source, plane_->stat_metadata_, kXEventDepth - 1);
  *metadata_id = 0;
  num_stats_ = 0;
  offset_ps_ = 0;
  duration_ps_ = 0;
  is_aggregated_ = false;
  WireReader reader(payload, source.origin(), kXEventDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XEventField::kStats)) {
      if (num_stats_ == source.limits.max_stats_per_event) {
        *error = WireError(
            payload.data(), source.origin(),
            absl::StrCat("more than ", source.limits.max_stats_per_event, " stats of one event"));
        return false;
      }
      if (num_stats_ == stats_.size()) stats_.resize(num_stats_ + 1);
      if (!stat_decoder.DecodeDefined(field.bytes, &stats_[num_stats_], error)) return false;
      ++num_stats_;
    } else if (field.type == WireType::kVarint) {
      const int64_t value = static_cast<int64_t>(field.scalar);
      switch (field.number) {
        case XEventField::kMetadataId:
          *metadata_id = value;
          break;
        // Offset and occurrences are one oneof: the later clears the earlier.
        case XEventField::kOffsetPs:
          offset_ps_ = value;
          is_aggregated_ = false;
          break;
        case XEventField::kNumOccurrences:
          offset_ps_ = 0;
          is_aggregated_ = true;
          break;
        case XEventField::kDurationPs:
          duration_ps_ = value;
          break;
      }
    }
  }
  if (!reader.failed()) return true;
  *error = reader.status();
  return false;
}

absl::StatusOr<XPlaneVisitor> XPlaneVisitor::Create(const XSpaceSource& source,
                                                    absl::string_view plane) {
  XPlaneVisitor visitor(&source);
  ASSIGN_OR_RETURN(visitor.layout_, ReadXPlaneLayout(source, plane));
  // Stats refer to stat metadata, so that comes first.
  RETURN_IF_ERROR(visitor.DecodeStatMetadata());
  RETURN_IF_ERROR(visitor.DecodeEventMetadata());
  RETURN_IF_ERROR(visitor.DecodeStats());
  return visitor;
}

absl::Status XPlaneVisitor::CheckEvents() const {
  XLineHeader header;
  for (absl::string_view line : layout_.lines) {
    RETURN_IF_ERROR(WalkTimes(line, &header, [](const XEventVisitor&) {}));
  }
  return absl::OkStatus();
}

const XStatVisitor* XPlaneVisitor::GetStat(StatType type) const { return FindStat(stats_, type); }

namespace {

// A map entry: the key, and the payloads of its value (proto3 merges several into one message).
struct MapEntry {
  int64_t key = 0;
  std::vector<absl::string_view> values;
};

absl::Status ReadMapEntry(const XSpaceSource& source, absl::string_view payload, MapEntry* entry) {
  entry->key = 0;
  entry->values.clear();
  WireReader reader(payload, source.origin(), kXPlaneDepth - 1);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(MapEntryField::kKey)) entry->key = static_cast<int64_t>(field.scalar);
    if (field.IsBytes(MapEntryField::kValue)) entry->values.push_back(field.bytes);
  }
  return reader.status();
}

// The nesting that is left below a map entry's value.
constexpr int kMetadataDepth = kXPlaneDepth - 2;

absl::Status ReadStatMetadata(const XSpaceSource& source, absl::string_view payload,
                              XStatMetadata* metadata) {
  WireReader reader(payload, source.origin(), kMetadataDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XStatMetadataField::kName)) {
      RETURN_IF_ERROR(ReadText(field.bytes, source.origin(), &metadata->name));
    } else if (field.IsBytes(XStatMetadataField::kDescription)) {
      absl::string_view checked;
      RETURN_IF_ERROR(ReadText(field.bytes, source.origin(), &checked));
    }
  }
  return reader.status();
}

absl::Status ReadEventMetadata(const XSpaceSource& source, absl::string_view payload,
                               const XStatDecoder& stat_decoder, size_t* num_stats,
                               XEventMetadata* metadata) {
  WireReader reader(payload, source.origin(), kMetadataDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XEventMetadataField::kName)) {
      RETURN_IF_ERROR(ReadText(field.bytes, source.origin(), &metadata->name));
    } else if (field.IsBytes(XEventMetadataField::kDisplayName)) {
      RETURN_IF_ERROR(ReadText(field.bytes, source.origin(), &metadata->display_name));
    } else if (field.IsBytes(XEventMetadataField::kStats)) {
      if (++*num_stats > source.limits.max_metadata_stats_per_plane) {
        return WireError(field.bytes.data(), source.origin(),
                         absl::StrCat("more than ", source.limits.max_metadata_stats_per_plane,
                                      " stats of metadata in one plane"));
      }
      absl::Status error;
      metadata->stats.emplace_back();
      if (!stat_decoder.DecodeDefined(field.bytes, &metadata->stats.back(), &error)) return error;
    } else if (field.IsBytes(XEventMetadataField::kChildId) &&
               !ForEachRepeatedVarint(field, [](int64_t) {})) {
      return WireError(field.bytes.data(), source.origin(), "packed child_id is cut");
    }
  }
  return reader.status();
}

// Decodes the entries of one of a plane's metadata maps; `read_value` decodes a value's payload.
template <typename Metadata, typename ReadValue>
absl::Status DecodeMap(const XSpaceSource& source, const std::vector<absl::string_view>& entries,
                       absl::string_view what, ReadValue read_value,
                       MetadataTable<Metadata>* table) {
  table->Reserve(entries.size());
  MapEntry entry;
  for (absl::string_view payload : entries) {
    RETURN_IF_ERROR(ReadMapEntry(source, payload, &entry));
    Metadata* metadata = table->Add(entry.key);
    if (metadata == nullptr) {
      return WireError(payload.data(), source.origin(),
                       absl::StrCat(what, " metadata id ", entry.key, " occurs twice"));
    }
    metadata->id = entry.key;
    for (absl::string_view value : entry.values) RETURN_IF_ERROR(read_value(value, metadata));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status XPlaneVisitor::DecodeStatMetadata() {
  const auto read = [this](absl::string_view value, XStatMetadata* metadata) -> absl::Status {
    RETURN_IF_ERROR(ReadStatMetadata(*source_, value, metadata));
    metadata->type = FindStatType(metadata->name);
    return absl::OkStatus();
  };
  return DecodeMap(*source_, layout_.stat_metadata, "stat", read, &stat_metadata_);
}

absl::Status XPlaneVisitor::DecodeEventMetadata() {
  const XStatDecoder stat_decoder(*source_, stat_metadata_, kMetadataDepth - 1);
  size_t num_stats = 0;
  const auto read = [&](absl::string_view value, XEventMetadata* metadata) {
    return ReadEventMetadata(*source_, value, stat_decoder, &num_stats, metadata);
  };
  return DecodeMap(*source_, layout_.event_metadata, "event", read, &event_metadata_);
}

absl::Status XPlaneVisitor::DecodeStats() {
  const XStatDecoder stat_decoder(*source_, stat_metadata_, kXPlaneDepth - 1);
  absl::Status error;
  for (absl::string_view payload : layout_.stats) {
    stats_.emplace_back();
    if (!stat_decoder.Decode(payload, &stats_.back(), &error)) return error;
  }
  return absl::OkStatus();
}

}  // namespace meridian
