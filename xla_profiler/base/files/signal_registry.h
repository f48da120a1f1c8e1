// SPDX-License-Identifier: Apache-2.0
// Pointers that a signal handler may follow while threads add and remove some. A handler may run
// between any two instructions, so it reads atomics without locks only, in entries that are never
// freed.
#ifndef XLA_PROFILER_BASE_FILES_SIGNAL_REGISTRY_H_
#define XLA_PROFILER_BASE_FILES_SIGNAL_REGISTRY_H_

#include <unistd.h>

#include <atomic>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace meridian {

template <typename T>
class SignalRegistry {
 public:
  // A place of the registry, for Remove.
  struct Entry {
    // Null where nothing is registered.
    std::atomic<const T*> value{nullptr};
    // Set before others see the entry.
    Entry* next = nullptr;
    Entry* next_free = nullptr;
  };

  // What it points to stays valid until Remove has returned.
  Entry* Add(const T* value) {
    Entry* entry = TakeEntry();
    entry->value.store(value);
    WaitIfEnding();
    return entry;
  }

  void Remove(Entry* entry) {
    entry->value.store(nullptr);
    WaitIfEnding();
    absl::MutexLock lock(&mutex_);
    entry->next_free = free_;
    free_ = entry;
  }

  // Visits all, in a signal handler. The process must end afterwards: threads that add or remove
  // something wait from then on.
  void VisitAndEnd(absl::FunctionRef<void(const T&)> visit) {
    is_ending_.store(true);
    for (Entry* entry = entries_.load(); entry != nullptr; entry = entry->next) {
      const T* value = entry->value.load();
      if (value != nullptr) visit(*value);
    }
  }

 private:
  static_assert(std::atomic<const T*>::is_always_lock_free);
  static_assert(std::atomic<Entry*>::is_always_lock_free);
  static_assert(std::atomic<bool>::is_always_lock_free);

  // A handler that sees a value has set is_ending_ before. So a thread that clears the entry and
  // does not see it may free the value: no handler reads it any more.
  void WaitIfEnding() const {
    while (is_ending_.load()) pause();
  }

  Entry* TakeEntry() {
    absl::MutexLock lock(&mutex_);
    if (free_ != nullptr) return std::exchange(free_, free_->next_free);
    auto* const entry = new Entry;
    entry->next = entries_.load();
    entries_.store(entry);
    return entry;
  }

  std::atomic<Entry*> entries_{nullptr};
  std::atomic<bool> is_ending_{false};
  absl::Mutex mutex_{absl::kConstInit};
  // The first free entry; the others follow it.
  Entry* free_ = nullptr;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_SIGNAL_REGISTRY_H_
