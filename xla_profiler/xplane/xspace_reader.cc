#include "xla_profiler/xplane/xspace_reader.h"

#include "absl/strings/str_cat.h"

namespace meridian {

absl::StatusOr<XSpaceReader> XSpaceReader::Open(FileSystem& file_system, const std::string& path,
                                                const XSpaceReaderOptions& options) {
  ASSIGN_OR_RETURN(InputFile file, InputFile::Open(file_system, path, options.input));
  auto owned = std::make_unique<InputFile>(std::move(file));
  ASSIGN_OR_RETURN(XSpaceReader reader, FromBytes(owned->bytes(), path, options.limits));
  reader.file_ = std::move(owned);
  return reader;
}

absl::StatusOr<XSpaceReader> XSpaceReader::FromBytes(absl::string_view bytes, std::string name,
                                                     const XSpaceLimits& limits) {
  if (bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": offset 0: the file is empty; expected a serialized XSpace"));
  }
  XSpaceReader reader;
  reader.name_ = std::move(name);
  reader.source_ = std::make_unique<XSpaceSource>(XSpaceSource{bytes, limits});
  absl::StatusOr<XSpaceLayout> layout = ReadXSpaceLayout(*reader.source_);
  if (!layout.ok()) {
    return Annotate(layout.status(), absl::StrCat(reader.name_, ": not an XSpace, or cut off"));
  }
  reader.layout_ = *std::move(layout);
  if (reader.layout_.planes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.name_, ": offset 0: no plane found; expected a serialized XSpace"));
  }
  return reader;
}

absl::StatusOr<XPlaneVisitor> XSpaceReader::Plane(size_t index) const {
  absl::StatusOr<XPlaneVisitor> plane = XPlaneVisitor::Create(*source_, layout_.planes[index]);
  if (!plane.ok()) return Annotate(plane.status(), name_);
  return plane;
}

absl::StatusOr<std::optional<XPlaneVisitor>> XSpaceReader::FindPlane(
    absl::string_view plane_name) const {
  for (size_t i = 0; i < layout_.planes.size(); ++i) {
    absl::StatusOr<XPlaneLayout> plane = ReadXPlaneLayout(*source_, layout_.planes[i]);
    if (!plane.ok()) return Annotate(plane.status(), name_);
    if (plane->name != plane_name) continue;
    ASSIGN_OR_RETURN(XPlaneVisitor visitor, Plane(i));
    return std::optional<XPlaneVisitor>(std::move(visitor));
  }
  return std::optional<XPlaneVisitor>();
}

}  // namespace meridian
