#include "xla_profiler/base/files/unfinished_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/base/attributes.h"

namespace meridian {
namespace {

// Deeper folders stay; the stack of a handler is finite.
constexpr int kMaxDepth = 16;
constexpr int kAttempts = 8;

ABSL_CONST_INIT SignalRegistry<char> registered_paths;
ABSL_CONST_INIT SignalRegistry<pid_t> registered_processes;

bool IsFolder(const char* path) {
  const size_t size = std::strlen(path);
  return size > 0 && path[size - 1] == '/';
}

void RemoveContents(int folder, int depth);

void RemoveEntry(int folder, const char* name, int depth) {
  if (unlinkat(folder, name, 0) == 0) return;
  const int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (inner == -1) return;
  if (depth < kMaxDepth) RemoveContents(inner, depth + 1);
  close(inner);
  unlinkat(folder, name, AT_REMOVEDIR);
}

// By system calls only: opendir(3) allocates.
void RemoveContents(int folder, int depth) {
  alignas(dirent64) char entries[4096];
  ssize_t bytes;
  while ((bytes = getdents64(folder, entries, sizeof(entries))) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      RemoveEntry(folder, entry->d_name, depth);
    }
  }
}

void RemoveFolder(const char* path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder == -1) return;
  // Entries that are removed may hide others, and threads that have not ended yet may add some.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    lseek(folder, 0, SEEK_SET);
    RemoveContents(folder, 1);
    if (rmdir(path) == 0) break;
  }
  close(folder);
}

}  // namespace

UnfinishedFile::UnfinishedFile(std::string path)
    : path_(std::move(path)), entry_(registered_paths.Add(path_.c_str())) {}

UnfinishedFile::~UnfinishedFile() { registered_paths.Remove(entry_); }

UnfinishedProcess::UnfinishedProcess(pid_t leader)
    : leader_(leader), entry_(registered_processes.Add(&leader_)) {}

UnfinishedProcess::~UnfinishedProcess() { registered_processes.Remove(entry_); }

void RemoveUnfinishedFiles() {
  // First, since they may write into the folders.
  registered_processes.VisitAndEnd([](const pid_t& leader) { kill(-leader, SIGKILL); });
  registered_paths.VisitAndEnd([](const char& first) {
    const char* path = &first;
    if (IsFolder(path)) {
      RemoveFolder(path);
    } else {
      unlink(path);
    }
  });
}

}  // namespace meridian
