#include "xla_profiler/base/large_buffer.h"

#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(LargeBufferTest, HasAtLeastTheBytesAskedFor) {
  for (size_t wanted : {size_t{1}, size_t{100}, size_t{5'000'000}}) {
    size_t size = wanted;
    const LargeBuffer buffer = AllocateLargeBuffer(&size);
    EXPECT_GE(size, wanted);
    std::memset(buffer.get(), 7, size);
    EXPECT_EQ(buffer[size - 1], 7);
  }
}

TEST(LargeBufferTest, LiesOnTheBordersOfLargePages) {
  size_t size = 5'000'000;
  const LargeBuffer buffer = AllocateLargeBuffer(&size);
  EXPECT_EQ(size, size_t{6} << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % (size_t{2} << 20), 0u);
}

}  // namespace
}  // namespace meridian
