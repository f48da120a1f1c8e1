#ifndef XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_
#define XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {

// A fresh folder that is removed with all that is in it, also when the process is interrupted.
class ScratchFolder {
 public:
  // Makes one in a folder that exists.
  static absl::StatusOr<ScratchFolder> Create(const std::string& parent);

  ScratchFolder(ScratchFolder&&) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, std::unique_ptr<const UnfinishedFile> registration)
      : path_(std::move(path)), registration_(std::move(registration)) {}

  std::string path_;
  // Null when the folder has moved to another.
  std::unique_ptr<const UnfinishedFile> registration_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_SCRATCH_FOLDER_H_
