// SPDX-License-Identifier: Apache-2.0
// Runs independent pieces of work on several threads, with the result of one thread: whatever the
// number of threads and their luck, the same error comes back.
#ifndef XLA_PROFILER_BASE_PARALLEL_FOR_H_
#define XLA_PROFILER_BASE_PARALLEL_FOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace meridian {

// Returns the number of threads that the machine runs at once, at least 1.
int MachineThreads();

// Calls work(0) to work(count - 1) on up to `threads` threads, the caller's among them, or fewer
// when the system gives no more. Returns the error of the smallest number that failed; after an error nothing new is begun. `progress` is told
// how many pieces are done, by one thread at a time.
absl::Status ParallelFor(size_t count, int threads, absl::FunctionRef<absl::Status(size_t)> work,
                         absl::FunctionRef<void(uint64_t)> progress);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PARALLEL_FOR_H_
