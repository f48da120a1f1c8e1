#include "xla_profiler/util/unfinished_files.h"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace meridian {
namespace {

constexpr int kSlots = 4096;

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
    if (path != nullptr) unlink(path);
  }
}

}  // namespace meridian
