#include "pipeline/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(FileSystem& file_system,
                                                             const std::string& folder) {
  const EndingSignalsHeldBack held_back;
  std::unique_ptr<FolderLock> made(new FolderLock(folder));
  made->is_new_ = !file_system.Kind(folder).ok();
  RETURN_IF_ERROR(file_system.CreateDirectories(folder));
  const std::string path = made->LockPath();
  int lock = -1;
  do {
    lock = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  } while (lock < 0 && errno == EINTR);
  if (lock < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write into ", folder));
  const bool is_locked = flock(lock, LOCK_EX | LOCK_NB) == 0;
  // Whoever held it before may have removed the file meanwhile.
  struct stat held = {}, named = {};
  const bool is_there =
      fstat(lock, &held) == 0 && stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino;
  if (!is_locked || !is_there) {
    close(lock);
    return absl::UnavailableError(absl::StrCat("another combine is writing into ", folder));
  }
  made->lock_ = lock;
  made->unfinished_ = std::make_unique<const UnfinishedFile>(path);
  return made;
}

FolderLock::~FolderLock() {
  if (lock_ < 0) return;
  const EndingSignalsHeldBack held_back;
  // Before the next command may take a lock of this name.
  unfinished_.reset();
  unlink(LockPath().c_str());
  close(lock_);
  // This fails when there is something in it.
  if (is_new_) rmdir(folder_.c_str());
}

}  // namespace meridian
