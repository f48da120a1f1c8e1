// SPDX-License-Identifier: Apache-2.0
// A file system whose calls fail on demand, to see what the code above does about it:
//
//   FaultyFileSystem file_system(FileSystem::Posix());
//   file_system.Fail(Operation::kRename, 1, absl::ResourceExhaustedError("disk full"));
#ifndef XLA_PROFILER_BASE_TESTING_FAULTY_FILE_SYSTEM_H_
#define XLA_PROFILER_BASE_TESTING_FAULTY_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

enum class Operation {
  kCreateFile,
  kCreateTemporary,
  kAppend,
  kSync,
  kClose,
  kMapTemporary,
  kMap,
  kRename,
  kDelete,
  kCreateDirectories,
  kSyncDirectory,
  kSyncFileSystem,
  kKind,
  kList,
  kGlob,
};

// For readable test failures.
std::ostream& operator<<(std::ostream& out, Operation operation);

// Passes every call on to another file system, except for those told to fail. Appends, syncs and
// closes of all its files count together.
class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& base) : base_(base) {}

  // Makes the n-th call of the operation, from 1, return the status without doing anything.
  void Fail(Operation operation, int n, absl::Status status);

  // Makes the n-th append write this many bytes before it returns the status, as a full disk does.
  void TearAppend(int n, uint64_t written_bytes, absl::Status status);

  // All calls so far, failed ones too.
  const std::vector<Operation>& operations() const { return operations_; }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateTemporary(
      const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<MappedRegion>> MapTemporary(const WritableFile& file) override;
  absl::StatusOr<std::unique_ptr<MappedRegion>> Map(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Delete(const std::string& path) override;
  absl::Status CreateDirectories(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status SyncFileSystem(const std::string& directory) override;
  absl::StatusOr<FileKind> Kind(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) override;

 private:
  class File;

  struct Fault {
    absl::Status status;
    uint64_t written_bytes = 0;
  };

  // Records a call and returns the fault planned for it, whose status is OK when there is none.
  Fault Record(Operation operation);

  FileSystem& base_;
  // Commands write files on several threads.
  std::mutex mutex_;
  std::map<std::pair<Operation, int>, Fault> faults_;
  std::vector<Operation> operations_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TESTING_FAULTY_FILE_SYSTEM_H_
