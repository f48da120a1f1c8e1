// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_PARALLEL_H_
#define XLA_PROFILER_BASE_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace meridian {

// Threads of ParallelFor unless it is told otherwise: what each holds takes memory.
inline constexpr size_t kMostThreads = 8;

// Calls run(0), run(1), ... run(count - 1), each once, on as many threads as the process may use
// cores, or `most_threads`. Returns the error of the least number, which does not depend on the
// threads; numbers after one that failed may be left out. `progress` may be null; it is called before
// each number, in their order.
absl::Status ParallelFor(size_t count, absl::FunctionRef<absl::Status(size_t)> run,
                         const std::function<void(size_t)>& progress = nullptr,
                         size_t most_threads = kMostThreads);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PARALLEL_H_
