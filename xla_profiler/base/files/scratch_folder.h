// SPDX-License-Identifier: Apache-2.0
// A fresh folder for files that a piece of work needs while it runs, and that is removed with all
// that is in it, also when the process is interrupted (unfinished_files.h).
#ifndef XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_
#define XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {

class ScratchFolder {
 public:
  // Makes "meridian-<purpose>-<random>" in a folder that exists; only the user may look into it.
  static absl::StatusOr<ScratchFolder> Create(const std::string& parent, absl::string_view purpose);

  ScratchFolder(ScratchFolder&&) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, std::unique_ptr<const UnfinishedFile> registration)
      : path_(std::move(path)), registration_(std::move(registration)) {}

  std::string path_;
  // Null when another ScratchFolder has taken the folder over.
  std::unique_ptr<const UnfinishedFile> registration_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_
