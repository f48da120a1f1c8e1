// SPDX-License-Identifier: Apache-2.0
// The traces of a run behind the door (trace_source.h): of one source, opened one by one in the
// form that everything else reads. A file may hold several.
#ifndef XLA_PROFILER_SOURCES_TRACE_FILES_H_
#define XLA_PROFILER_SOURCES_TRACE_FILES_H_

#include <cstddef>
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
};

class TraceFiles {
 public:
  // No files, of which none can be opened.
  TraceFiles() = default;

  // Tells the source of the files, of which there is at least one, and converts them if need be,
  // into unnamed temporary files. The file system must outlive this object. InvalidArgument that
  // names two files when they are of different sources, and for a file that is no profile:
  // "et_0.json is a PyTorch execution trace; expected an XSpace, ...". What is not known is taken
  // for one of the same source as the others, if one of them is known and it is not empty. Other
  // errors are those of the source's conversion.
  static absl::StatusOr<TraceFiles> Create(FileSystem& file_system, std::vector<std::string> paths,
                                           TraceFilesOptions options = {});

  const TraceSource& source() const { return *source_; }
  TraceForm form() const { return source_->form(); }

  // The traces, in the order of their files: one each, or several, in the order in which the source
  // found them.
  size_t size() const { return paths_.size(); }
  // By trace: what it is called, its file's path, with what tells it in a file that holds several:
  // "run.csv (rank 3)".
  const std::vector<std::string>& paths() const { return paths_; }
  const std::string& FileOf(size_t trace) const { return files_[trace]; }
  // "rank 3"; empty for the only trace of a file.
  const std::string& PartOf(size_t trace) const { return parts_[trace]; }

  // Returns the trace in the form. Valid while this object lives.
  absl::StatusOr<InputFile> Open(size_t trace) const;

  // What the source's conversion has to say.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Converts the files, which become the traces that the source finds in them.
  absl::Status Convert();

  FileSystem* file_system_ = nullptr;
  TraceFilesOptions options_;
  const TraceSource* source_ = nullptr;
  // By trace.
  std::vector<std::string> paths_;
  std::vector<std::string> files_;
  std::vector<std::string> parts_;
  // By trace; empty where no conversion is needed.
  std::vector<std::unique_ptr<MappedRegion>> converted_;
  std::vector<std::string> notes_;
};

// Returns the source of all of the files. Errors are those of TraceFiles::Create.
absl::StatusOr<const TraceSource*> DetectOneSource(FileSystem& file_system,
                                                   const std::vector<std::string>& paths);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_TRACE_FILES_H_
