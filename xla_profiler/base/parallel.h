// SPDX-License-Identifier: Apache-2.0
#ifndef XLA_PROFILER_BASE_PARALLEL_H_
#define XLA_PROFILER_BASE_PARALLEL_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace meridian {

// Calls run(0), run(1), ... run(count - 1), each once, on as many threads as the process may use
// cores. Returns the error of the least number; numbers after one that failed may be left out, so
// that what is returned does not depend on the threads.
absl::Status ParallelFor(size_t count, absl::FunctionRef<absl::Status(size_t)> run);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_PARALLEL_H_
