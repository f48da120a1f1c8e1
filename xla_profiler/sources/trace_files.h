// SPDX-License-Identifier: Apache-2.0
// The traces of a run behind the door (trace_source.h): of one source, opened one by one in the
// form that everything else reads.
#ifndef XLA_PROFILER_SOURCES_TRACE_FILES_H_
#define XLA_PROFILER_SOURCES_TRACE_FILES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

struct TraceFilesOptions {
  InputFileOptions input;
  ConversionOptions conversion;
  // Which files are looked at to tell their source, where other processes look at the others; null
  // for all.
  std::function<bool(size_t file)> is_own;
};

class TraceFiles {
 public:
  // No files, of which none can be opened.
  TraceFiles() = default;

  // Tells the source of the files, of which there is at least one, and converts them if need be,
  // into unnamed temporary files. The file system must outlive this object. InvalidArgument that
  // names two files when they are of different sources, and for a file that is no profile:
  // "et_0.json is a PyTorch execution trace; expected an XSpace, ...". What is not known is taken
  // for one of the same source as the others; if none is known, for an XSpace. Other errors are
  // those of the source's conversion.
  static absl::StatusOr<TraceFiles> Create(FileSystem& file_system, std::vector<std::string> paths,
                                           TraceFilesOptions options = {});

  const TraceSource& source() const { return *source_; }
  TraceForm form() const { return source_->form(); }
  const std::vector<std::string>& paths() const { return paths_; }
  size_t size() const { return paths_.size(); }

  // Returns what the file holds in the form. Valid while this object lives.
  absl::StatusOr<InputFile> Open(size_t file) const;

  // What the source's conversion has to say.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  FileSystem* file_system_ = nullptr;
  std::vector<std::string> paths_;
  TraceFilesOptions options_;
  const TraceSource* source_ = nullptr;
  // The converted traces, by file; empty where none is needed.
  std::vector<std::unique_ptr<MappedRegion>> converted_;
  std::vector<std::string> notes_;
};

// Returns the source of all of the files. Errors are those of TraceFiles::Create.
absl::StatusOr<const TraceSource*> DetectOneSource(FileSystem& file_system,
                                                   const std::vector<std::string>& paths);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_TRACE_FILES_H_
