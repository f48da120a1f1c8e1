#include "xla_profiler/base/files/unfinished_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace meridian {
namespace {

constexpr int kSlots = 4096;
// Deeper folders stay; the stack of a handler is finite.
constexpr int kMaxDepth = 16;
constexpr int kAttempts = 8;

// Null where nothing is registered. A handler may run between any two instructions: only atomics
// without locks, and of static storage, will do.
std::atomic<const char*> registered_paths[kSlots];
std::atomic<bool> is_ending{false};
static_assert(std::atomic<const char*>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

// A handler that sees a path in its slot has set is_ending before. So a thread that clears the slot
// and does not see it may free the path: no handler reads it any more.
void WaitIfEnding() {
  while (is_ending.load()) pause();
}

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

UnfinishedFile::UnfinishedFile(std::string path) : path_(std::move(path)) {
  for (int slot = 0; slot < kSlots && slot_ < 0; ++slot) {
    const char* free = nullptr;
    if (registered_paths[slot].compare_exchange_strong(free, path_.c_str())) slot_ = slot;
  }
  WaitIfEnding();
}

UnfinishedFile::~UnfinishedFile() {
  if (slot_ < 0) return;
  registered_paths[slot_].store(nullptr);
  WaitIfEnding();
}

void RemoveUnfinishedFiles() {
  is_ending.store(true);
  for (const std::atomic<const char*>& registered : registered_paths) {
    const char* path = registered.load();
    if (path == nullptr) continue;
    if (IsFolder(path)) {
      RemoveFolder(path);
    } else {
      unlink(path);
    }
  }
}

}  // namespace meridian
