#include "xla_profiler/base/files/atomic_file_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/temporary_files.h"

namespace meridian {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20, kManyBytes = size_t{1} << 17;

// Returns the directory of a path, with the slash; "" for a bare name.
absl::string_view DirectoryPrefix(absl::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

std::string TemporaryPath(absl::string_view path) {
  const absl::string_view prefix = DirectoryPrefix(path);
  absl::BitGen random;
  return absl::StrCat(prefix, ".", path.substr(prefix.size()), ".",
                      absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16), ".tmp");
}

// Returns whether TemporaryPath() makes names like this one.
bool IsTemporaryName(absl::string_view name) {
  constexpr size_t kDigits = 16;
  if (!absl::ConsumePrefix(&name, ".") || !absl::ConsumeSuffix(&name, ".tmp")) return false;
  if (name.size() < kDigits + 2 || name[name.size() - kDigits - 1] != '.') return false;
  return std::all_of(name.end() - kDigits, name.end(), absl::ascii_isxdigit);
}

// Devices and what stands for open files are often links to regular files, and a rename replaces
// the link.
bool NamesADevice(absl::string_view path) {
  const bool in_memory = absl::StartsWith(path, "/dev/shm/");
  return absl::StartsWith(path, "/proc/") || (absl::StartsWith(path, "/dev/") && !in_memory);
}

absl::Status CheckReplaceable(FileSystem& file_system, const std::string& path) {
  if (NamesADevice(path)) return InvalidArgument(path, ": is not a regular file");
  const absl::StatusOr<FileKind> kind = file_system.Kind(path);
  if (absl::IsNotFound(kind.status())) return absl::OkStatus();
  RETURN_IF_ERROR(kind.status());
  if (*kind == FileKind::kRegular) return absl::OkStatus();
  return InvalidArgument(
      path, *kind == FileKind::kDirectory ? ": is a directory" : ": is not a regular file");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFileWriter>> AtomicFileWriter::CreateWithFolder(
    FileSystem& file_system, const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    RETURN_IF_ERROR(file_system.CreateDirectories(path.substr(0, slash)));
  }
  return Create(file_system, path);
}

absl::StatusOr<std::unique_ptr<AtomicFileWriter>> AtomicFileWriter::Create(
    FileSystem& file_system, const std::string& path) {
  if (path.size() == DirectoryPrefix(path).size()) {
    return InvalidArgument("\"", path, "\": not the name of a file");
  }
  RETURN_IF_ERROR(CheckReplaceable(file_system, path));
  auto temporary = std::make_unique<const UnfinishedFile>(TemporaryPath(path));
  absl::StatusOr<std::unique_ptr<WritableFile>> file = file_system.CreateFile(temporary->path());
  if (absl::IsNotFound(file.status())) return NotFound(path, ": its directory does not exist");
  if (!file.ok()) return Annotate(file.status(), path);
  return std::unique_ptr<AtomicFileWriter>(
      new AtomicFileWriter(file_system, path, std::move(temporary), *std::move(file)));
}

AtomicFileWriter::AtomicFileWriter(FileSystem& file_system, std::string path,
                                   std::unique_ptr<const UnfinishedFile> temporary,
                                   std::unique_ptr<WritableFile> file)
    : file_system_(file_system),
      path_(std::move(path)),
      temporary_(std::move(temporary)),
      file_(std::move(file)) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (temporary_ != nullptr) file_system_.Delete(temporary_->path()).IgnoreError();
}

absl::Status AtomicFileWriter::Append(absl::string_view data) {
  bytes_appended_ += data.size();
  if (status_.ok()) status_ = Annotate(AppendBuffered(data), path_);
  return status_;
}

absl::Status AtomicFileWriter::Commit() {
  if (status_.ok()) status_ = Annotate(Finish(/*sync=*/true), path_);
  if (status_.ok()) status_ = Annotate(Publish(), path_);
  if (status_.ok()) status_ = Annotate(file_system_.SyncDirectory(Directory()), path_);
  return status_;
}

absl::Status AtomicFileWriter::AppendBuffered(absl::string_view data) {
  if (buffer_.size() + data.size() > kBufferBytes) {
    RETURN_IF_ERROR(Flush());
  }
  // A call for so many bytes costs less than copying them.
  if (buffer_.empty() && data.size() >= kManyBytes) return file_->Append(data);
  buffer_.append(data.data(), data.size());
  return absl::OkStatus();
}

absl::Status AtomicFileWriter::Flush() {
  if (buffer_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(file_->Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status AtomicFileWriter::Finish(bool sync) {
  if (file_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Flush());
  std::string().swap(buffer_);
  if (sync) RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_->Close());
  file_ = nullptr;
  return absl::OkStatus();
}

absl::Status AtomicFileWriter::Publish() {
  RETURN_IF_ERROR(file_system_.Rename(temporary_->path(), path_));
  temporary_ = nullptr;
  return absl::OkStatus();
}

std::string AtomicFileWriter::Directory() const {
  const absl::string_view directory = DirectoryPrefix(path_);
  return directory.empty() ? "." : std::string(directory);
}

void RemoveTemporaryFiles(FileSystem& file_system, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = file_system.List(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsTemporaryName(name)) file_system.Delete(absl::StrCat(folder, "/", name)).IgnoreError();
  }
}

absl::Status AtomicFileBatch::Add(std::unique_ptr<AtomicFileWriter> file) {
  RETURN_IF_ERROR(file->status_);
  RETURN_IF_ERROR(Annotate(file->Finish(/*sync=*/files_.size() < kSyncedAlone), file->path_));
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status AtomicFileBatch::Commit() {
  std::set<std::string> directories, unsynced;
  for (size_t i = 0; i < files_.size(); ++i) {
    directories.insert(files_[i]->Directory());
    if (i >= kSyncedAlone) unsynced.insert(files_[i]->Directory());
  }
  for (const std::string& directory : unsynced) {
    RETURN_IF_ERROR(file_system_.SyncFileSystem(directory));
  }
  {
    const EndingSignalsHeldBack held_back;
    for (const auto& file : files_) RETURN_IF_ERROR(Annotate(file->Publish(), file->path_));
  }
  files_.clear();
  for (const std::string& directory : directories) {
    RETURN_IF_ERROR(file_system_.SyncDirectory(directory));
  }
  return absl::OkStatus();
}

}  // namespace meridian
