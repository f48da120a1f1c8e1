#include "astra_bridge/calibration/size_ranges.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

// 1, 4, 16, 64 and 256 are the bounds.
TEST(SizeRangesTest, RangesHaveTheSameRatio) {
  const SizeRanges ranges(1, 256, 4);
  EXPECT_EQ(ranges.RangeOf(1), 0u);
  EXPECT_EQ(ranges.RangeOf(3), 0u);
  EXPECT_EQ(ranges.RangeOf(5), 1u);
  EXPECT_EQ(ranges.RangeOf(63), 2u);
  EXPECT_EQ(ranges.RangeOf(65), 3u);
  EXPECT_EQ(ranges.RangeOf(256), 3u);
}

}  // namespace
}  // namespace meridian
