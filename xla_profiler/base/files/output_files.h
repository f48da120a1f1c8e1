// SPDX-License-Identifier: Apache-2.0
// The files that a command writes: none of them one of its inputs, all of them there at the end or,
// if something fails on the way, none.
#ifndef XLA_PROFILER_BASE_FILES_OUTPUT_FILES_H_
#define XLA_PROFILER_BASE_FILES_OUTPUT_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct OutputFile {
  // What it is, e.g. "combined".
  std::string kind;
  std::string path;
  uint64_t bytes = 0;
};

// InvalidArgument when an output is an input, also under another name, or two outputs are one.
// Empty paths are those of flags that were not given.
absl::Status CheckOutputPaths(const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs);

// InvalidArgument when a command that writes PREFIX.<something><suffix> would overwrite an input,
// or the prefix names a folder ("out/"). `flag` names the prefix in errors.
absl::Status CheckOutputPrefix(absl::string_view flag, const std::string& prefix,
                               const std::vector<std::string>& suffixes,
                               const std::vector<std::string>& inputs);

// Writes a text, making the folder that it lies in. An empty path is that of a flag that was not
// given.
absl::Status WriteOutput(FileSystem& file_system, const std::string& path, absl::string_view text);

class OutputFiles {
 public:
  explicit OutputFiles(FileSystem& file_system)
      : file_system_(file_system), pending_(file_system) {}

  // Writes a file that is not seen before Commit; gzip when its name ends in .gz. Makes the folder
  // that it lies in.
  absl::Status Write(const std::string& kind, const std::string& path,
                     absl::FunctionRef<absl::Status(ByteSink&)> write);

  // Writes the text likewise. An empty path is that of a flag that was not given.
  absl::Status WriteText(const std::string& kind, const std::string& path, absl::string_view text);

  // Returns the path under which files()[index] can be read now, before Commit.
  std::string ReadablePath(size_t index) const;

  // Puts everything written so far in its place: all files are whole on the disk before the first
  // one is renamed.
  absl::Status Commit();

  // In the order they were written.
  const std::vector<OutputFile>& files() const { return files_; }

 private:
  FileSystem& file_system_;
  std::vector<OutputFile> files_;
  // The files from this number on are not committed yet.
  size_t committed_ = 0;
  AtomicFileBatch pending_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_OUTPUT_FILES_H_
