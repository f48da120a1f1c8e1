#include "xla_profiler/base/parallel_for.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace meridian {
namespace {

// What the threads share. Numbers are handed out in order: whatever fails first in time, all
// smaller numbers have been begun, so that the smallest one that fails is always found.
class Work {
 public:
  Work(size_t count, absl::FunctionRef<absl::Status(size_t)> work,
       absl::FunctionRef<void(uint64_t)> progress)
      : count_(count), work_(work), progress_(progress) {}

  void RunThread() {
    size_t number;
    while (Take(&number)) Finish(number, work_(number));
  }

  absl::Status status() const {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  bool Take(size_t* number) {
    absl::MutexLock lock(&mutex_);
    if (next_ == count_ || !status_.ok()) return false;
    *number = next_++;
    return true;
  }

  void Finish(size_t number, absl::Status status) {
    absl::MutexLock lock(&mutex_);
    if (!status.ok() && (status_.ok() || number < failed_)) {
      status_ = std::move(status);
      failed_ = number;
    }
    progress_(++done_);
  }

  const size_t count_;
  const absl::FunctionRef<absl::Status(size_t)> work_;
  const absl::FunctionRef<void(uint64_t)> progress_;
  mutable absl::Mutex mutex_;
  // The smallest number that has not been begun.
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  // The smallest number that failed and its error; the number means nothing while the status is OK.
  size_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

int MachineThreads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

absl::Status ParallelFor(size_t count, int threads, absl::FunctionRef<absl::Status(size_t)> work,
                         absl::FunctionRef<void(uint64_t)> progress) {
  Work shared(count, work, progress);
  std::vector<std::thread> helpers;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(1, threads)));
  for (size_t i = 1; i < wanted; ++i) helpers.emplace_back([&] { shared.RunThread(); });
  shared.RunThread();
  for (std::thread& helper : helpers) helper.join();
  return shared.status();
}

}  // namespace meridian
