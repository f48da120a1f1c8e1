#include "xla_profiler/base/parallel_for.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace meridian {

int MachineThreads() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

absl::Status ParallelFor(size_t count, int threads, absl::FunctionRef<absl::Status(size_t)> work,
                         absl::FunctionRef<void(uint64_t)> progress) {
  // What the threads share is read and written under the mutex only. Numbers are handed out in
  // order: whatever fails first in time, all smaller numbers have been begun, so that the smallest
  // one that fails is always found.
  absl::Mutex mutex;
  size_t next = 0;
  uint64_t done = 0;
  // The smallest number that failed and its error; the number means nothing while the status is OK.
  size_t failed = 0;
  absl::Status status;
  const auto run_thread = [&] {
    mutex.Lock();
    while (next != count && status.ok()) {
      const size_t number = next++;
      mutex.Unlock();
      absl::Status result = work(number);
      mutex.Lock();
      if (!result.ok() && (status.ok() || number < failed)) {
        status = std::move(result);
        failed = number;
      }
      progress(++done);
    }
    mutex.Unlock();
  };
  std::vector<std::thread> helpers;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(1, threads)));
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back(run_thread);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
  run_thread();
  for (std::thread& helper : helpers) helper.join();
  return status;
}

}  // namespace meridian
