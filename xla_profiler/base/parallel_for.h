// Independent pieces of work on several threads.
#ifndef XLA_PROFILER_BASE_PARALLEL_FOR_H_
#define XLA_PROFILER_BASE_PARALLEL_FOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace meridian {

// Returns the number of threads that the machine runs at once, at least 1.
int MachineThreads();

// Calls work(0) to work(count - 1), on up to `threads` threads; with one, on the caller's. Returns
// the error of the smallest number that failed, whatever the number of threads; after an error
// nothing new is begun. `progress` is told how many are done, by one thread at a time.
absl::Status ParallelFor(size_t count, int threads, absl::FunctionRef<absl::Status(size_t)> work,
                         absl::FunctionRef<void(uint64_t)> progress);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PARALLEL_FOR_H_
