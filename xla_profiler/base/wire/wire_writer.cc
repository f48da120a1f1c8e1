#include "xla_profiler/base/wire/wire_writer.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {

// Memory that is filled from front to back is asked for in large pages where it is large: page by
// page, getting new memory takes as long as filling it.
void BufferOutput::Grow(size_t size) {
  constexpr size_t kLargePage = size_t{2} << 20;
  capacity_ = std::max(2 * capacity_, used_ + size + 4096);
  const bool is_large = capacity_ >= 2 * kLargePage;
  const size_t alignment = is_large ? kLargePage : alignof(std::max_align_t);
  capacity_ = (capacity_ + alignment - 1) / alignment * alignment;
  std::unique_ptr<char[], Free> larger(
      static_cast<char*>(std::aligned_alloc(alignment, capacity_)));
  MERIDIAN_CHECK(larger != nullptr && "out of memory");
#ifdef MADV_HUGEPAGE
  // Only a wish: where it is not granted, small pages do.
  if (is_large) madvise(larger.get(), capacity_, MADV_HUGEPAGE);
#endif
  if (used_ > 0) std::memcpy(larger.get(), buffer_.get(), used_);
  buffer_ = std::move(larger);
}

}  // namespace meridian
