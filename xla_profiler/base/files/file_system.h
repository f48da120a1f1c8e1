// SPDX-License-Identifier: Apache-2.0
// The file operations this project uses, behind an interface so that tests can make each of them
// fail (see testing/faulty_file_system.h).
#ifndef XLA_PROFILER_BASE_FILES_FILE_SYSTEM_H_
#define XLA_PROFILER_BASE_FILES_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// A file open for writing. Not thread safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Appends all of data or fails.
  virtual absl::Status Append(absl::string_view data) = 0;

  // Makes everything appended so far survive a crash of the machine.
  virtual absl::Status Sync() = 0;

  // Closes the file; nothing may be called afterwards. The destructor closes silently.
  virtual absl::Status Close() = 0;
};

// The bytes of a whole file, mapped read-only. The file must not be truncated while this lives.
class MappedRegion {
 public:
  virtual ~MappedRegion() = default;

  virtual absl::string_view bytes() const = 0;
};

// Takes a part of a mapped file out of memory until it is read again: who has read a large file need
// not hold it. Other text stays as it is.
void ForgetMapped(absl::string_view part);

// Does so behind a walk over a text, some megabytes at a time.
class ForgettingWalk {
 public:
  explicit ForgettingWalk(absl::string_view text) : begin_(text.data()) {}

  // The walk is done with what stands before.
  void Reach(const char* here) {
    if (here - begin_ < kForgottenBytes) return;
    ForgetMapped(absl::string_view(begin_, static_cast<size_t>(here - begin_)));
    begin_ = here;
  }

 private:
  static constexpr ptrdiff_t kForgottenBytes = ptrdiff_t{4} << 20;

  // Where what is not forgotten begins.
  const char* begin_;
};

// Returns the name of the mapped file whose bytes the address lies in, or null. For the handler of
// SIGBUS, which ends the process: reading bytes raises it that are not in the file any more.
const char* MappedFileAt(const void* address);

enum class FileKind { kRegular, kDirectory, kOther };

// Files by their paths, which all errors name.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Returns the operating system's.
  static FileSystem& Posix();

  // Creates a new file; AlreadyExists when there is one of that name.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) = 0;

  // Creates a file without a name in the directory, gone when closed. The caller reads it back
  // with MapTemporary.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateTemporary(
      const std::string& directory) = 0;

  // Maps all bytes of a file that CreateTemporary made.
  virtual absl::StatusOr<std::unique_ptr<MappedRegion>> MapTemporary(const WritableFile& file) = 0;

  // Maps a regular file. A directory, pipe or device is InvalidArgument.
  virtual absl::StatusOr<std::unique_ptr<MappedRegion>> Map(const std::string& path) = 0;

  // Gives a file another name, replacing the file that has it.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;

  virtual absl::Status Delete(const std::string& path) = 0;

  // Creates the directory and its missing parents; an existing directory is fine.
  virtual absl::Status CreateDirectories(const std::string& path) = 0;

  // Makes renames and creations in the directory survive a crash of the machine.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Makes everything written so far to the file system that holds the directory survive a crash of
  // the machine, by whomever it was written: one call in place of a Sync of each of many files.
  virtual absl::Status SyncFileSystem(const std::string& directory) = 0;

  // Follows links; NotFound when there is nothing.
  virtual absl::StatusOr<FileKind> Kind(const std::string& path) = 0;

  // Returns the names in the directory, without "." and "..", in no particular order.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;

  // Returns the existing paths that match a shell pattern (*, ?, [..]; a backslash quotes), in no
  // particular order. A folder that would have to be searched but cannot be read is an error.
  virtual absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) = 0;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_FILE_SYSTEM_H_
