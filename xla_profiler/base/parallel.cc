#include "xla_profiler/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace meridian {

absl::Status ParallelFor(size_t count, absl::FunctionRef<absl::Status(size_t)> run,
                         const std::function<void(size_t)>& progress, size_t most_threads) {
  std::vector<absl::Status> statuses(count);
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  // Behind the mutex.
  size_t next = 0;
  const auto work = [&] {
    while (!has_failed) {
      size_t number = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (next == count) return;
        number = next++;
        if (progress != nullptr) progress(number);
      }
      statuses[number] = run(number);
      if (!statuses[number].ok()) has_failed = true;
    }
  };
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t threads = std::min({cores, count, most_threads});
  std::vector<std::thread> others;
  while (others.size() + 1 < threads) {
    // A process that may have no more threads does with those it has.
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;
    }
  }
  work();
  for (std::thread& other : others) other.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace meridian
