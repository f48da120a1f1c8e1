#include "xla_profiler/xplane/xplane_wire.h"

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/utf8.h"

namespace meridian {
namespace {

// What forgetting a shorter part, or remembering the header of a shorter line, takes is not worth it.
constexpr size_t kFewBytes = size_t{1} << 16;

absl::Status AppendBounded(const XSpaceSource& source, absl::string_view payload, size_t limit,
                           absl::string_view what, std::vector<absl::string_view>* list) {
  if (list->size() >= limit) {
    return WireError(payload.data(), source.origin(), absl::StrCat("more than ", limit, " ", what));
  }
  list->push_back(payload);
  return absl::OkStatus();
}

absl::Status AppendText(const XSpaceSource& source, absl::string_view payload,
                        std::vector<absl::string_view>* list) {
  absl::string_view text;
  RETURN_IF_ERROR(ReadText(payload, source.origin(), &text));
  return AppendBounded(source, text, source.limits.max_messages, "messages", list);
}

}  // namespace

absl::Status ReadText(absl::string_view bytes, const char* origin, absl::string_view* text) {
  const size_t valid = ValidUtf8Prefix(bytes);
  if (valid != bytes.size()) {
    return WireError(bytes.data() + valid, origin, "text is not UTF-8");
  }
  *text = bytes;
  return absl::OkStatus();
}

absl::StatusOr<XSpaceLayout> ReadXSpaceLayout(const XSpaceSource& source) {
  XSpaceLayout layout;
  WireReader reader(source.bytes, source.origin(), kXSpaceDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.type != WireType::kBytes) continue;
    switch (field.number) {
      case XSpaceField::kPlanes:
        RETURN_IF_ERROR(
            AppendBounded(source, field.bytes, source.limits.max_planes, "planes", &layout.planes));
        break;
      case XSpaceField::kErrors:
        RETURN_IF_ERROR(AppendText(source, field.bytes, &layout.errors));
        break;
      case XSpaceField::kWarnings:
        RETURN_IF_ERROR(AppendText(source, field.bytes, &layout.warnings));
        break;
      case XSpaceField::kHostnames:
        RETURN_IF_ERROR(AppendText(source, field.bytes, &layout.hostnames));
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  return layout;
}

absl::StatusOr<XPlaneLayout> ReadXPlaneLayout(const XSpaceSource& source, absl::string_view plane) {
  XPlaneLayout layout;
  layout.payload = plane;
  const XSpaceLimits& limits = source.limits;
  WireReader reader(plane, source.origin(), kXPlaneDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(XPlaneField::kId)) layout.id = static_cast<int64_t>(field.scalar);
    if (field.type != WireType::kBytes) continue;
    switch (field.number) {
      case XPlaneField::kName:
        RETURN_IF_ERROR(ReadText(field.bytes, source.origin(), &layout.name));
        break;
      case XPlaneField::kLines:
        RETURN_IF_ERROR(
            AppendBounded(source, field.bytes, limits.max_lines, "lines", &layout.lines));
        break;
      case XPlaneField::kEventMetadata:
        RETURN_IF_ERROR(AppendBounded(source, field.bytes, limits.max_metadata_per_plane,
                                      "event metadata entries in one plane",
                                      &layout.event_metadata));
        break;
      case XPlaneField::kStatMetadata:
        RETURN_IF_ERROR(AppendBounded(source, field.bytes, limits.max_metadata_per_plane,
                                      "stat metadata entries in one plane", &layout.stat_metadata));
        break;
      case XPlaneField::kStats:
        RETURN_IF_ERROR(AppendBounded(source, field.bytes, limits.max_stats_per_event,
                                      "stats of one plane", &layout.stats));
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  return layout;
}

std::optional<XLineHeader> XLineHeaders::Find(absl::string_view line) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = headers_.find(line.data());
  return found == headers_.end() ? std::nullopt : std::optional<XLineHeader>(found->second);
}

void XLineHeaders::Add(const XLineHeader& header) {
  const absl::MutexLock lock(&mutex_);
  headers_.emplace(header.payload.data(), header);
}

absl::StatusOr<XLineHeader> ReadXLineHeader(const XSpaceSource& source, absl::string_view line) {
  XLineHeaders* known = line.size() < kFewBytes ? nullptr : source.line_headers.get();
  if (known != nullptr) {
    if (const std::optional<XLineHeader> header = known->Find(line)) return *header;
  }
  XLineHeader header;
  RETURN_IF_ERROR(
      WalkXLine(source, line, &header, [](absl::string_view) { return absl::OkStatus(); }));
  if (known != nullptr) known->Add(header);
  return header;
}

void XSpaceSource::Forget(absl::string_view part) const {
  if (part.size() >= kFewBytes) ForgetMapped(part);
}

absl::Status internal::ReadXLineField(const XSpaceSource& source, const WireField& field,
                                      XLineHeader* header) {
  if (field.IsBytes(XLineField::kName))
    return ReadText(field.bytes, source.origin(), &header->name);
  if (field.IsBytes(XLineField::kDisplayName)) {
    return ReadText(field.bytes, source.origin(), &header->display_name);
  }
  if (field.type != WireType::kVarint) return absl::OkStatus();
  const int64_t value = static_cast<int64_t>(field.scalar);
  switch (field.number) {
    case XLineField::kId:
      header->id = value;
      break;
    case XLineField::kTimestampNs:
      header->timestamp_ns = value;
      break;
  }
  return absl::OkStatus();
}

}  // namespace meridian
