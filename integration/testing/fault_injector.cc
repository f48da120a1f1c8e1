// SPDX-License-Identifier: Apache-2.0
// A library to preload (LD_PRELOAD) that makes one system call on the files below a folder go
// wrong:
//
//   FAULT_FOLDER  the folder
//   FAULT_CALL    which call, from 1: they count together. 0: none
//   FAULT_KIND    an error number that it fails with, "short" (a write of half the bytes),
//                 "interrupted" (EINTR once), "kill" (SIGKILL instead of the call), "term" (SIGTERM
//                 before it)
//   FAULT_COUNT   a file that is written when the program exits: the number of calls, and the name
//                 of the one that went wrong
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> calls{0};
std::atomic<const char*> faulty_call{"none"};

enum class Outcome { kGoOn, kFail, kShort };

// Counts a call of that name; sets errno where it is to fail.
Outcome Count(const char* name) {
  const char* number = getenv("FAULT_CALL");
  const char* kind = getenv("FAULT_KIND");
  const int call = ++calls;
  if (number == nullptr || kind == nullptr || call != atoi(number)) return Outcome::kGoOn;
  faulty_call = name;
  if (strcmp(kind, "kill") == 0) raise(SIGKILL);
  if (strcmp(kind, "term") == 0) raise(SIGTERM);
  if (strcmp(kind, "short") == 0)
    return strcmp(name, "write") == 0 ? Outcome::kShort : Outcome::kGoOn;
  errno = strcmp(kind, "interrupted") == 0 ? EINTR : atoi(kind);
  return errno == 0 ? Outcome::kGoOn : Outcome::kFail;
}

bool IsBelow(const char* path) {
  const char* folder = getenv("FAULT_FOLDER");
  return folder != nullptr && strncmp(path, folder, strlen(folder)) == 0;
}

bool IsFileBelow(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return IsBelow(path);
}

int Open(const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && IsBelow(path) && Count("open") == Outcome::kFail) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return Open(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return Open(path, flags, mode);
}

ssize_t write(int file, const void* data, size_t size) {
  if (IsFileBelow(file)) {
    const Outcome outcome = Count("write");
    if (outcome == Outcome::kFail) return -1;
    if (outcome == Outcome::kShort && size > 1) size /= 2;
  }
  return syscall(SYS_write, file, data, size);
}

int fsync(int file) {
  if (IsFileBelow(file) && Count("fsync") == Outcome::kFail) return -1;
  return static_cast<int>(syscall(SYS_fsync, file));
}

int syncfs(int file) noexcept {
  if (IsFileBelow(file) && Count("syncfs") == Outcome::kFail) return -1;
  return static_cast<int>(syscall(SYS_syncfs, file));
}

// The file is closed, whatever close(2) returns. Of files that were only read nobody cares.
int close(int file) {
  const bool is_written = (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
  const bool fails = is_written && IsFileBelow(file) && Count("close") == Outcome::kFail;
  const int error = errno;
  const int result = static_cast<int>(syscall(SYS_close, file));
  if (fails) errno = error;
  return fails ? -1 : result;
}

// It is never interrupted.
int rename(const char* from, const char* to) noexcept {
  if (IsBelow(to) && Count("rename") == Outcome::kFail && errno != EINTR) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (IsBelow(path) && Count("mkdir") == Outcome::kFail && errno != EINTR) return -1;
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

}  // extern "C"

__attribute__((destructor)) static void WriteCount() {
  const char* path = getenv("FAULT_COUNT");
  std::FILE* file = path == nullptr ? nullptr : fopen(path, "w");
  if (file == nullptr) return;
  fprintf(file, "%d %s\n", calls.load(), faulty_call.load());
  fclose(file);
}
