#include "xla_profiler/base/large_buffer.h"

#include <sys/mman.h>

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;

}  // namespace

LargeBuffer AllocateLargeBuffer(size_t* size) {
  const bool is_large = *size >= 2 * kLargePage;
  const size_t alignment = is_large ? kLargePage : alignof(std::max_align_t);
  *size = (*size + alignment - 1) / alignment * alignment;
  LargeBuffer buffer(static_cast<char*>(std::aligned_alloc(alignment, *size)));
  MERIDIAN_CHECK(buffer != nullptr && "out of memory");
#ifdef MADV_HUGEPAGE
  // Only a wish: where it is not granted, small pages do.
  if (is_large) madvise(buffer.get(), *size, MADV_HUGEPAGE);
#endif
  return buffer;
}

}  // namespace meridian
