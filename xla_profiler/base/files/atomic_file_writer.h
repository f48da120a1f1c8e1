// SPDX-License-Identifier: Apache-2.0
// Writes a file so that a crash at any moment leaves the old file or the new one, never half of it:
//
//   append to <dir>/.<name>.<random>.tmp  ->  sync  ->  rename to <dir>/<name>  ->  sync <dir>
//
// An uncommitted writer removes its temporary file; so does an interrupted command
// (unfinished_files.h).
#ifndef XLA_PROFILER_BASE_FILES_ATOMIC_FILE_WRITER_H_
#define XLA_PROFILER_BASE_FILES_ATOMIC_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/unfinished_files.h"

namespace meridian {

class AtomicFileWriter : public ByteSink {
 public:
  // Missing parent directories are an error, as is a path that exists and is no regular file: a
  // rename would replace even a device.
  static absl::StatusOr<std::unique_ptr<AtomicFileWriter>> Create(FileSystem& file_system,
                                                                  const std::string& path);
  // The same for outputs that a user names, whose folder is made if there is none.
  static absl::StatusOr<std::unique_ptr<AtomicFileWriter>> CreateWithFolder(
      FileSystem& file_system, const std::string& path);
  ~AtomicFileWriter() override;

  // Collects small pieces in a buffer and hands large ones on at once.
  absl::Status Append(absl::string_view data) override;

  uint64_t bytes_appended() const { return bytes_appended_; }

  // Makes the file visible under its name. Nothing may be called afterwards. Fails without touching
  // the old file, and also when an append had failed; only if syncing the directory is what fails,
  // the new file is already in place.
  absl::Status Commit();

 private:
  friend class AtomicFileBatch;

  AtomicFileWriter(FileSystem& file_system, std::string path,
                   std::unique_ptr<const UnfinishedFile> temporary,
                   std::unique_ptr<WritableFile> file);

  absl::Status AppendBuffered(absl::string_view data);
  absl::Status Flush();
  // Hands everything to the operating system, or to the disk, and frees what writing it took.
  absl::Status Finish(bool sync);
  // Gives the file its name.
  absl::Status Publish();
  // Returns the directory in which the file lies.
  std::string Directory() const;

  FileSystem& file_system_;
  const std::string path_;
  // The temporary file; null once it has its final name.
  std::unique_ptr<const UnfinishedFile> temporary_;
  // Null once everything is on the disk.
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  uint64_t bytes_appended_ = 0;
  // The first error; everything after it returns the same.
  absl::Status status_;
};

// Files that get their names together: none before the bytes of all are on the disk.
//
// The first kSyncedAlone files are synced one by one. A sync waits for the disk however small the
// file is, so the files beyond are synced by one call for their whole file system, which may have
// to wait for what other programs write, too. Each directory is synced once.
class AtomicFileBatch {
 public:
  static constexpr size_t kSyncedAlone = 64;

  explicit AtomicFileBatch(FileSystem& file_system) : file_system_(file_system) {}

  // Takes a file to which nothing will be appended any more, and frees what writing it took.
  absl::Status Add(std::unique_ptr<AtomicFileWriter> file);

  // Returns where the file that was added as number `index` lies until it is committed.
  const std::string& temporary_path(size_t index) const {
    return files_[index]->temporary_->path();
  }

  // Makes the files visible under their names, in the order in which they came, and forgets them.
  // Signals that would end the process wait until all are; if a rename fails, the files before it
  // are in place and those after it as they were.
  absl::Status Commit();

 private:
  FileSystem& file_system_;
  std::vector<std::unique_ptr<AtomicFileWriter>> files_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_ATOMIC_FILE_WRITER_H_
