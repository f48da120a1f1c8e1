// SPDX-License-Identifier: Apache-2.0
// Memory that is filled once from front to back. The kernel hands it out in large pages where it
// can: page by page, getting new memory takes as long as filling it.
#ifndef XLA_PROFILER_BASE_LARGE_BUFFER_H_
#define XLA_PROFILER_BASE_LARGE_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace meridian {

struct FreeBuffer {
  void operator()(char* buffer) const { std::free(buffer); }
};
using LargeBuffer = std::unique_ptr<char[], FreeBuffer>;

// Returns uninitialized memory of at least `*size` bytes, rounded up to what it has. Memory that
// cannot be had ends the process, as with new.
LargeBuffer AllocateLargeBuffer(size_t* size);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_LARGE_BUFFER_H_
