#include "xla_profiler/base/files/file_system.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/signal_registry.h"

namespace meridian {
namespace {

// Repeats a system call that a signal interrupted.
template <typename Call>
auto RetryInterrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }

  // Returns 0 or the error number. Never repeats: after EINTR the descriptor is closed, too, and
  // its number may already be another thread's.
  int Close() {
    if (fd_ == -1) return 0;
    const int result = close(std::exchange(fd_, -1));
    return result == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int fd_;
};

class PosixWritableFile : public WritableFile {
 public:
  // What is written of a file that is not read back soon leaves memory as it comes.
  PosixWritableFile(int fd, std::string name, bool is_read_back)
      : fd_(fd), name_(std::move(name)), is_read_back_(is_read_back) {}

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const size_t size = std::min(data.size(), kStretch);
      const ssize_t written = RetryInterrupted([&] { return write(fd_.get(), data.data(), size); });
      if (written == -1) return ErrnoToStatus(errno, name_);
      data.remove_prefix(written);
      cached_ += written;
      if (cached_ >= kStretch && !is_read_back_) LeaveMemory();
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (RetryInterrupted([&] { return fsync(fd_.get()); }) == -1) {
      return ErrnoToStatus(errno, name_);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    const int error = fd_.Close();
    return error == 0 ? absl::OkStatus() : ErrnoToStatus(error, name_);
  }

  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

 private:
  static constexpr size_t kStretch = size_t{2} << 20;

  // Starts to write to the disk what is not there, and takes what is there out of memory, without
  // waiting. Gigabytes of output would drive out what others need, and memory that nothing used before
  // costs a virtual machine more time than the disk does.
  void LeaveMemory() {
    // Where a file system cannot do it, the file stays in memory.
    posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
    cached_ = 0;
  }

  FileDescriptor fd_;
  std::string name_;
  const bool is_read_back_;
  // What was written since the last call.
  size_t cached_ = 0;
};

// Bytes of a file at their place in memory, and the file's name.
struct NamedBytes {
  absl::string_view bytes;
  std::string name;
};

ABSL_CONST_INIT SignalRegistry<NamedBytes> mapped_files;

// Where mapped files end in memory, and where each begins.
struct MappedParts {
  absl::Mutex mutex;
  std::map<uintptr_t, uintptr_t> begins;

  static MappedParts& Get() {
    static MappedParts& parts = *new MappedParts;
    return parts;
  }
};

class PosixMappedRegion : public MappedRegion {
 public:
  PosixMappedRegion(const void* data, size_t size, std::string name)
      : mapped_{{static_cast<const char*>(data), size}, std::move(name)},
        entry_(mapped_files.Add(&mapped_)) {
    const absl::MutexLock lock(&MappedParts::Get().mutex);
    MappedParts::Get().begins[end()] = begin();
  }
  ~PosixMappedRegion() override {
    mapped_files.Remove(entry_);
    {
      const absl::MutexLock lock(&MappedParts::Get().mutex);
      MappedParts::Get().begins.erase(end());
    }
    munmap(const_cast<char*>(mapped_.bytes.data()), bytes().size());
  }

  absl::string_view bytes() const override { return mapped_.bytes; }

 private:
  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(mapped_.bytes.data()); }
  uintptr_t end() const { return begin() + mapped_.bytes.size(); }

  const NamedBytes mapped_;
  SignalRegistry<NamedBytes>::Entry* const entry_;
};

// The bytes of an empty file, which cannot be mapped.
class EmptyRegion : public MappedRegion {
 public:
  absl::string_view bytes() const override { return ""; }
};

absl::StatusOr<std::unique_ptr<MappedRegion>> MapDescriptor(int fd, const std::string& name) {
  struct stat info;
  if (fstat(fd, &info) == -1) return ErrnoToStatus(errno, name);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(name, ": not a regular file");
  const size_t size = info.st_size;
  if (size == 0) return std::make_unique<EmptyRegion>();
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return ErrnoToStatus(errno, name);
  madvise(data, size, MADV_SEQUENTIAL);
  return std::make_unique<PosixMappedRegion>(data, size, name);
}

int OpenAndUnlinkTemporary(const std::string& directory) {
  std::string path = absl::StrCat(directory, "/meridian.XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd != -1) unlink(path.c_str());
  return fd;
}

int OpenDirectory(const std::string& path) {
  return RetryInterrupted([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    const int fd = RetryInterrupted(
        [&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (fd == -1) return ErrnoToStatus(errno, path);
    return std::make_unique<PosixWritableFile>(fd, path, /*is_read_back=*/false);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateTemporary(
      const std::string& directory) override {
    const std::string name = absl::StrCat(directory, " (temporary file)");
    int fd = RetryInterrupted(
        [&] { return open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
    // Not every file system knows files without a name.
    if (fd == -1 && errno == EOPNOTSUPP) fd = OpenAndUnlinkTemporary(directory);
    if (fd == -1) return ErrnoToStatus(errno, name);
    return std::make_unique<PosixWritableFile>(fd, name, /*is_read_back=*/true);
  }

  absl::StatusOr<std::unique_ptr<MappedRegion>> MapTemporary(const WritableFile& file) override {
    const auto* posix_file = dynamic_cast<const PosixWritableFile*>(&file);
    MERIDIAN_CHECK(posix_file != nullptr);
    return MapDescriptor(posix_file->fd(), posix_file->name());
  }

  absl::StatusOr<std::unique_ptr<MappedRegion>> Map(const std::string& path) override {
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    const FileDescriptor fd(
        RetryInterrupted([&] { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); }));
    if (fd.get() == -1) return ErrnoToStatus(errno, path);
    return MapDescriptor(fd.get(), path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == -1) {
      return ErrnoToStatus(errno, absl::StrCat(from, " -> ", to));
    }
    return absl::OkStatus();
  }

  absl::Status Delete(const std::string& path) override {
    if (unlink(path.c_str()) == -1) return ErrnoToStatus(errno, path);
    return absl::OkStatus();
  }

  absl::Status CreateDirectories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    return error ? ErrnoToStatus(error.value(), path) : absl::OkStatus();
  }

  absl::Status SyncFileSystem(const std::string& directory) override {
    const FileDescriptor fd(OpenDirectory(directory));
    if (fd.get() == -1 || RetryInterrupted([&] { return syncfs(fd.get()); }) == -1) {
      return ErrnoToStatus(errno, directory);
    }
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const FileDescriptor fd(OpenDirectory(path));
    if (fd.get() == -1) return ErrnoToStatus(errno, path);
    // EINVAL: some network file systems cannot sync a directory, and offer nothing better.
    if (RetryInterrupted([&] { return fsync(fd.get()); }) == -1 && errno != EINVAL) {
      return ErrnoToStatus(errno, path);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FileKind> Kind(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) == -1) return ErrnoToStatus(errno, path);
    if (S_ISREG(info.st_mode)) return FileKind::kRegular;
    if (S_ISDIR(info.st_mode)) return FileKind::kDirectory;
    return FileKind::kOther;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entry(directory, error);
    while (!error && entry != std::filesystem::directory_iterator()) {
      names.push_back(entry->path().filename().string());
      entry.increment(error);
    }
    if (error) return ErrnoToStatus(error.value(), directory);
    return names;
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) override {
    glob_t matches = {};
    const absl::Cleanup free_matches = [&] { globfree(&matches); };
    // A folder that cannot be read is an error: silently fewer inputs would be a wrong answer.
    const auto stop_unless_missing = [](const char*, int error) -> int { return error != ENOENT; };
    switch (glob(pattern.c_str(), GLOB_NOSORT, stop_unless_missing, &matches)) {
      case 0:
      case GLOB_NOMATCH:
        return std::vector<std::string>(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
      case GLOB_NOSPACE:
        return ErrnoToStatus(ENOMEM, pattern);
      default:
        return ErrnoToStatus(errno, pattern);
    }
  }
};

}  // namespace

void ForgetMapped(absl::string_view part) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  {
    MappedParts& parts = MappedParts::Get();
    const absl::MutexLock lock(&parts.mutex);
    const auto mapped = parts.begins.upper_bound(begin);
    if (mapped == parts.begins.end() || mapped->second > begin) return;
  }
  // The pages are those of the file, which nobody writes.
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

const char* MappedFileAt(const void* address) {
  const char* name = nullptr;
  mapped_files.VisitAndEnd([&](const NamedBytes& mapped) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(mapped.bytes.data());
    if (reinterpret_cast<std::uintptr_t>(address) - begin < mapped.bytes.size()) {
      name = mapped.name.c_str();
    }
  });
  return name;
}

FileSystem& FileSystem::Posix() {
  static FileSystem& posix = *new PosixFileSystem;
  return posix;
}

}  // namespace meridian
