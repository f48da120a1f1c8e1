// SPDX-License-Identifier: Apache-2.0
// A library to preload (LD_PRELOAD) that makes one system call on the files below a folder go
// wrong:
//
//   FAULT_FOLDER  the folder
//   FAULT_CALL    which call, from 1: they count together. 0: none
//   FAULT_KIND    an error number that it fails with, "short" (a write of half the bytes),
//                 "interrupted" (EINTR once), "kill" (SIGKILL instead of the call), "term" (SIGTERM
//                 before it)
//   FAULT_COUNT   a file that the number of calls is written to when the program exits
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls = 0;

enum Outcome { kGoOn, kFail, kShort };

// Counts a call; sets errno where it is to fail.
static enum Outcome Count(int is_write) {
  const char* number = getenv("FAULT_CALL");
  const char* kind = getenv("FAULT_KIND");
  const int call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (number == NULL || kind == NULL || call != atoi(number)) return kGoOn;
  if (strcmp(kind, "kill") == 0) raise(SIGKILL);
  if (strcmp(kind, "term") == 0) raise(SIGTERM);
  if (strcmp(kind, "short") == 0) return is_write ? kShort : kGoOn;
  errno = strcmp(kind, "interrupted") == 0 ? EINTR : atoi(kind);
  return errno == 0 ? kGoOn : kFail;
}

static int IsBelow(const char* path) {
  const char* folder = getenv("FAULT_FOLDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int IsFileBelow(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  return IsBelow(path);
}

static int Open(const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && IsBelow(path) && Count(0) == kFail) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

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
    const enum Outcome outcome = Count(1);
    if (outcome == kFail) return -1;
    if (outcome == kShort && size > 1) size /= 2;
  }
  return syscall(SYS_write, file, data, size);
}

int fsync(int file) {
  if (IsFileBelow(file) && Count(0) == kFail) return -1;
  return (int)syscall(SYS_fsync, file);
}

// The file is closed, whatever close(2) returns. Of files that were only read nobody cares.
int close(int file) {
  const int is_written = (fcntl(file, F_GETFL) & O_ACCMODE) != O_RDONLY;
  const int fails = is_written && IsFileBelow(file) && Count(0) == kFail;
  const int error = errno;
  const int result = (int)syscall(SYS_close, file);
  if (fails) errno = error;
  return fails ? -1 : result;
}

// It is never interrupted.
int rename(const char* from, const char* to) {
  if (IsBelow(to) && Count(0) == kFail && errno != EINTR) return -1;
  return (int)syscall(SYS_rename, from, to);
}

int mkdir(const char* path, mode_t mode) {
  if (IsBelow(path) && Count(0) == kFail && errno != EINTR) return -1;
  return (int)syscall(SYS_mkdir, path, mode);
}

__attribute__((destructor)) static void WriteCount(void) {
  const char* path = getenv("FAULT_COUNT");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", calls);
  fclose(file);
}
