#include "xla_profiler/xplane/xspace_reader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

// White space is tags and lengths to XSpaces, too, but no plane begins with the group that '{' is.
bool IsJsonObject(absl::string_view bytes) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(bytes);
  return text.size() > 1 && text[0] == '{' && (absl::ascii_isspace(text[1]) || text[1] == '"');
}

}  // namespace

absl::StatusOr<XSpaceReader> XSpaceReader::Open(FileSystem& file_system, const std::string& path,
                                                const XSpaceReaderOptions& options) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(file_system, path, options.input));
  return OfFile(std::move(file), options.limits);
}

absl::StatusOr<XSpaceReader> XSpaceReader::OfFile(InputFile file, const XSpaceLimits& limits) {
  auto owned = std::make_shared<const InputFile>(std::move(file));
  // Offsets in what follows are not those of the file on disk.
  const std::string name =
      owned->was_compressed() ? absl::StrCat(owned->path(), " (inflated)") : owned->path();
  ASSIGN_OR_RETURN(XSpaceReader reader, OfSource({owned->bytes(), limits}, name));
  reader.file_ = std::move(owned);
  return reader;
}

absl::StatusOr<XSpaceReader> XSpaceReader::FromBytes(absl::string_view bytes, std::string name,
                                                     const XSpaceLimits& limits) {
  return OfSource({bytes, limits}, std::move(name));
}

absl::StatusOr<XSpaceReader> XSpaceReader::OfSource(XSpaceSource source, std::string name) {
  if (source.bytes.empty()) {
    return InvalidArgument(name, ": offset 0: the file is empty; expected a serialized XSpace");
  }
  if (IsJsonObject(source.bytes)) {
    return InvalidArgument(name,
                           ": is JSON, as PyTorch's traces are; expected a serialized XSpace");
  }
  source.line_headers = std::make_shared<XLineHeaders>();
  XSpaceReader reader;
  reader.name_ = std::move(name);
  reader.source_ = std::make_shared<const XSpaceSource>(std::move(source));
  absl::StatusOr<XSpaceLayout> layout = ReadXSpaceLayout(*reader.source_);
  if (!layout.ok() || layout->planes.empty()) {
    return InvalidArgument(reader.name_, ": ",
                           layout.ok() ? "offset 0: no plane found" : layout.status().message(),
                           "; expected a serialized XSpace");
  }
  reader.layout_ = *std::move(layout);
  return reader;
}

absl::Status XSpaceReader::TooManyLines(size_t plane) const {
  return Annotate(WireError(layout_.planes[plane].data(), source_->origin(),
                            absl::StrCat("more than ", source_->limits.max_lines, " lines")),
                  name_);
}

XSpaceReader XSpaceReader::Select(std::vector<PlaneSelection> planes, std::string name) const {
  XSpaceReader selected;
  selected.name_ = std::move(name);
  selected.file_ = file_;
  selected.source_ = source_;
  selected.layout_ = layout_;
  selected.layout_.planes.clear();
  for (const PlaneSelection& plane : planes) {
    selected.layout_.planes.push_back(layout_.planes[plane.index]);
  }
  selected.selection_ = std::make_shared<const std::vector<PlaneSelection>>(std::move(planes));
  return selected;
}

absl::StatusOr<XPlaneVisitor> XSpaceReader::Plane(size_t index) const {
  ASSIGN_OR_RETURN(XPlaneVisitor plane,
                   Annotate(XPlaneVisitor::Create(*source_, layout_.planes[index]), name_));
  if (selection_ == nullptr) return plane;
  const PlaneSelection& selected = (*selection_)[index];
  if (!selected.name.empty()) plane.Rename(selected.name);
  if (selected.lines.has_value()) plane.KeepLines(*selected.lines);
  return plane;
}

absl::StatusOr<std::optional<XPlaneVisitor>> XSpaceReader::FindPlane(
    absl::string_view plane_name) const {
  for (size_t i = 0; i < layout_.planes.size(); ++i) {
    ASSIGN_OR_RETURN(const XPlaneLayout plane,
                     Annotate(ReadXPlaneLayout(*source_, layout_.planes[i]), name_));
    const bool renamed = selection_ != nullptr && !(*selection_)[i].name.empty();
    const absl::string_view name = renamed ? absl::string_view((*selection_)[i].name) : plane.name;
    if (name != plane_name) continue;
    ASSIGN_OR_RETURN(XPlaneVisitor visitor, Plane(i));
    return std::optional<XPlaneVisitor>(std::move(visitor));
  }
  return std::optional<XPlaneVisitor>();
}

}  // namespace meridian
