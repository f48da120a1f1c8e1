// SPDX-License-Identifier: Apache-2.0
// Keeps a folder that one process fills from all others.
#ifndef PIPELINE_FOLDER_LOCK_H_
#define PIPELINE_FOLDER_LOCK_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {

class FolderLock {
 public:
  // Makes the folder and locks it for as long as the object lives; Unavailable when another process
  // has it. A folder that was made and stayed empty goes with the object; the lock goes also when a
  // signal ends the process.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(FileSystem& file_system,
                                                          const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(std::string folder) : folder_(std::move(folder)) {}

  std::string LockPath() const { return folder_ + "/.lock"; }

  const std::string folder_;
  // The open file of the lock, -1 while it is not held, and what removes it after a signal.
  int lock_ = -1;
  std::unique_ptr<const UnfinishedFile> unfinished_;
  // Whether the folder was not there before.
  bool is_new_ = false;
};

}  // namespace meridian

#endif  // PIPELINE_FOLDER_LOCK_H_
