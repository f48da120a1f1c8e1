#include "xla_profiler/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace meridian {

absl::Status ParallelFor(size_t count, absl::FunctionRef<absl::Status(size_t)> run) {
  std::vector<absl::Status> statuses(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> has_failed{false};
  const auto work = [&] {
    while (!has_failed) {
      const size_t number = next++;
      if (number >= count) return;
      statuses[number] = run(number);
      if (!statuses[number].ok()) has_failed = true;
    }
  };
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(cores, count)) {
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
