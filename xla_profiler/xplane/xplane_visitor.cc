#include "xla_profiler/xplane/xplane_visitor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace meridian {
namespace {

const XStatVisitor* FindStat(absl::Span<const XStatVisitor> stats, StatType type) {
  for (const XStatVisitor& stat : stats) {
    if (stat.Type() == type) return &stat;
  }
  return nullptr;
}

}  // namespace

// Decodes stats of one plane.
class XStatDecoder {
 public:
  XStatDecoder(const XSpaceSource& source, const MetadataTable<XStatMetadata>& metadata, int depth)
      : source_(source), metadata_(metadata), depth_(depth) {}

  // Appends the stat. Its id, and the id it refers to, must have metadata.
  absl::Status Append(absl::string_view payload, std::vector<XStatVisitor>* stats) const {
    RETURN_IF_ERROR(AppendUnresolved(payload, stats));
    if (ABSL_PREDICT_FALSE(stats->back().metadata_ == nullptr)) {
      return Error(payload, absl::StrCat("stat metadata id ", stats->back().id_,
                                         " is used but not defined in its plane"));
    }
    return absl::OkStatus();
  }

  // Like Append, but an id without metadata is fine.
  absl::Status AppendUnresolved(absl::string_view payload, std::vector<XStatVisitor>* stats) const {
    if (ABSL_PREDICT_FALSE(stats->size() >= source_.limits.max_stats_per_owner)) {
      return Error(payload, absl::StrCat("more than ", source_.limits.max_stats_per_owner,
                                         " stats of one event or metadata entry"));
    }
    stats->emplace_back();
    XStatVisitor& stat = stats->back();
    WireReader reader(payload, source_.origin(), depth_);
    WireField field;
    while (reader.Next(&field)) RETURN_IF_ERROR(DecodeField(field, &stat));
    if (ABSL_PREDICT_FALSE(reader.failed())) return reader.status();
    stat.metadata_ = metadata_.Find(stat.id_);
    if (stat.value_case_ == XStatVisitor::ValueCase::kRef) return Resolve(payload, &stat);
    return absl::OkStatus();
  }

 private:
  using ValueCase = XStatVisitor::ValueCase;

  absl::Status DecodeField(const WireField& field, XStatVisitor* stat) const {
    switch (field.type) {
      case WireType::kVarint:
        switch (field.number) {
          case XStatField::kMetadataId:
            stat->id_ = static_cast<int64_t>(field.scalar);
            break;
          case XStatField::kUint64:
            SetScalar(ValueCase::kUint64, field.scalar, stat);
            break;
          case XStatField::kInt64:
            SetScalar(ValueCase::kInt64, field.scalar, stat);
            break;
          case XStatField::kRef:
            SetScalar(ValueCase::kRef, field.scalar, stat);
            break;
        }
        break;
      case WireType::kBytes:
        if (field.number == XStatField::kStr) {
          RETURN_IF_ERROR(ReadText(source_, field.bytes, &stat->text_));
          stat->value_case_ = ValueCase::kStr;
        } else if (field.number == XStatField::kBytes) {
          stat->text_ = field.bytes;
          stat->value_case_ = ValueCase::kBytes;
        }
        break;
      case WireType::kFixed64:
        if (field.number == XStatField::kDouble) SetScalar(ValueCase::kDouble, field.scalar, stat);
        break;
      default:
        break;
    }
    return absl::OkStatus();
  }

  static void SetScalar(ValueCase value_case, uint64_t scalar, XStatVisitor* stat) {
    stat->value_case_ = value_case;
    stat->scalar_ = scalar;
  }

  absl::Status Resolve(absl::string_view payload, XStatVisitor* stat) const {
    const XStatMetadata* referred = metadata_.Find(stat->AsInt());
    if (ABSL_PREDICT_FALSE(referred == nullptr)) {
      return Error(payload, absl::StrCat("a stat refers to stat metadata id ", stat->scalar_,
                                         ", which is not defined in its plane"));
    }
    stat->text_ = referred->name;
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view payload, absl::string_view reason) const {
    return WireError(payload.data(), source_.origin(), reason);
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

std::string XStatVisitor::ToString() const {
  switch (value_case_) {
    case ValueCase::kNone:
      return "";
    case ValueCase::kDouble:
      return absl::StrFormat("%.17g", DoubleValue());
    case ValueCase::kUint64:
      return absl::StrCat(scalar_);
    case ValueCase::kInt64:
      return absl::StrCat(AsInt());
    case ValueCase::kStr:
    case ValueCase::kRef:
      return std::string(text_);
    case ValueCase::kBytes:
      return absl::StrCat("<", text_.size(), " bytes>");
  }
  return "";
}

const XStatVisitor* XEventVisitor::GetStat(StatType type) const { return FindStat(stats_, type); }

const XStatVisitor* XEventVisitor::GetEventOrMetadataStat(StatType type) const {
  const XStatVisitor* stat = FindStat(metadata_->stats, type);
  return stat != nullptr ? stat : GetStat(type);
}

absl::Status XEventVisitor::Decode(absl::string_view payload) {
  const XSpaceSource& source = plane_->Source();
  const XStatDecoder stat_decoder(source, plane_->stat_metadata_, kXEventDepth - 1);
  int64_t metadata_id = 0;
  offset_ps_ = 0;
  duration_ps_ = 0;
  num_occurrences_ = 0;
  is_aggregated_ = false;
  stats_.clear();
  file_offset_ = payload.data() - source.origin();
  WireReader reader(payload, source.origin(), kXEventDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XEventField::kStats)) {
      RETURN_IF_ERROR(stat_decoder.Append(field.bytes, &stats_));
    } else if (field.type == WireType::kVarint) {
      const int64_t value = static_cast<int64_t>(field.scalar);
      switch (field.number) {
        case XEventField::kMetadataId:
          metadata_id = value;
          break;
        // Offset and occurrences are one oneof: the later clears the earlier.
        case XEventField::kOffsetPs:
          offset_ps_ = value;
          num_occurrences_ = 0;
          is_aggregated_ = false;
          break;
        case XEventField::kNumOccurrences:
          num_occurrences_ = value;
          offset_ps_ = 0;
          is_aggregated_ = true;
          break;
        case XEventField::kDurationPs:
          duration_ps_ = value;
          break;
      }
    }
  }
  if (ABSL_PREDICT_FALSE(reader.failed())) return reader.status();
  metadata_ = plane_->GetEventMetadata(metadata_id);
  if (ABSL_PREDICT_FALSE(metadata_ == nullptr)) {
    return WireError(
        payload.data(), source.origin(),
        absl::StrCat("event metadata id ", metadata_id, " is used but not defined in its plane"));
  }
  return absl::OkStatus();
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
      RETURN_IF_ERROR(ReadText(source, field.bytes, &metadata->name));
    } else if (field.IsBytes(XStatMetadataField::kDescription)) {
      RETURN_IF_ERROR(ReadText(source, field.bytes, &metadata->description));
    }
  }
  return reader.status();
}

absl::Status ReadEventMetadata(const XSpaceSource& source, absl::string_view payload,
                               const XStatDecoder& stat_decoder, XEventMetadata* metadata) {
  WireReader reader(payload, source.origin(), kMetadataDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(XEventMetadataField::kName)) {
      RETURN_IF_ERROR(ReadText(source, field.bytes, &metadata->name));
    } else if (field.IsBytes(XEventMetadataField::kDisplayName)) {
      RETURN_IF_ERROR(ReadText(source, field.bytes, &metadata->display_name));
    } else if (field.IsBytes(XEventMetadataField::kMetadata)) {
      metadata->metadata = field.bytes;
    } else if (field.IsBytes(XEventMetadataField::kStats)) {
      RETURN_IF_ERROR(stat_decoder.Append(field.bytes, &metadata->stats));
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
  const auto read = [&](absl::string_view value, XEventMetadata* metadata) {
    return ReadEventMetadata(*source_, value, stat_decoder, metadata);
  };
  return DecodeMap(*source_, layout_.event_metadata, "event", read, &event_metadata_);
}

absl::Status XPlaneVisitor::DecodeStats() {
  const XStatDecoder stat_decoder(*source_, stat_metadata_, kXPlaneDepth - 1);
  for (absl::string_view payload : layout_.stats) {
    RETURN_IF_ERROR(stat_decoder.AppendUnresolved(payload, &stats_));
  }
  return absl::OkStatus();
}

}  // namespace meridian
