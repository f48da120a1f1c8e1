// SPDX-License-Identifier: Apache-2.0
// An XSpace file, open for reading: `*.xplane.pb`, plain or gzip, of any size.
#ifndef XLA_PROFILER_XPLANE_XSPACE_READER_H_
#define XLA_PROFILER_XPLANE_XSPACE_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

struct XSpaceReaderOptions {
  InputFileOptions input;
  XSpaceLimits limits;
};

// A plane of a profile, perhaps under another name and with some of its lines only.
struct PlaneSelection {
  // Position among the profile's planes.
  size_t index = 0;
  // Empty to keep the name.
  std::string name;
  // Payloads of lines of the plane; absent for all.
  std::optional<std::vector<absl::string_view>> lines;
};

class XSpaceReader {
 public:
  // Opens the file and finds its planes. All errors, here and below, begin with the path. An empty
  // file is an error: every profiler writes at least one plane.
  static absl::StatusOr<XSpaceReader> Open(FileSystem& file_system, const std::string& path,
                                           const XSpaceReaderOptions& options = {});

  // Reads a file that is open already.
  static absl::StatusOr<XSpaceReader> OfFile(InputFile file, const XSpaceLimits& limits = {});

  // Reads bytes that the caller keeps alive; `name` stands for the path in errors.
  static absl::StatusOr<XSpaceReader> FromBytes(absl::string_view bytes, std::string name,
                                                const XSpaceLimits& limits = {});

  // A reader of the same bytes that sees only these planes, in this order. Its name stands in
  // errors. source() is still the whole profile.
  XSpaceReader Select(std::vector<PlaneSelection> planes, std::string name) const;

  XSpaceReader(XSpaceReader&&) = default;
  XSpaceReader& operator=(XSpaceReader&&) = default;

  // The path, with a remark when offsets are not those of the file on disk; errors begin with it.
  const std::string& name() const { return name_; }
  // The path as it was given.
  const std::string& path() const { return file_ == nullptr ? name_ : file_->path(); }
  const XSpaceSource& source() const { return *source_; }
  const XSpaceLayout& layout() const { return layout_; }

  // Decodes the metadata of the plane at that position in the file. The visitor may outlive moves
  // of this reader, not its end.
  absl::StatusOr<XPlaneVisitor> Plane(size_t index) const;

  // As XSpaceSource.
  void Forget(absl::string_view part) const { source_->Forget(part); }

  // Visits the planes in file order; one plane is in memory at a time.
  template <typename Fn>
  absl::Status ForEachPlane(Fn&& fn) const;

  // Returns the first plane of that name, or nullopt.
  absl::StatusOr<std::optional<XPlaneVisitor>> FindPlane(absl::string_view plane_name) const;

 private:
  XSpaceReader() = default;
  static absl::StatusOr<XSpaceReader> OfSource(XSpaceSource source, std::string name);
  absl::Status TooManyLines(size_t plane) const;

  std::string name_;
  // Shared with readers of a selection. On the heap: visitors point to source and selection.
  std::shared_ptr<const InputFile> file_;
  std::shared_ptr<const XSpaceSource> source_;
  XSpaceLayout layout_;
  // One per plane of the layout; null when nothing was selected.
  std::shared_ptr<const std::vector<PlaneSelection>> selection_;
};

// Implementation only below.

template <typename Fn>
absl::Status XSpaceReader::ForEachPlane(Fn&& fn) const {
  absl::Status error;
  size_t num_lines = 0;
  for (size_t i = 0; i < layout_.planes.size(); ++i) {
    ASSIGN_OR_RETURN(const XPlaneVisitor plane, Plane(i));
    num_lines += plane.NumLines();
    if (num_lines > source_->limits.max_lines) return TooManyLines(i);
    if (!internal::CallVisitor(fn, plane, &error)) return Annotate(error, name_);
    Forget(layout_.planes[i]);
  }
  return absl::OkStatus();
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XSPACE_READER_H_
