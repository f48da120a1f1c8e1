#include "critical_path/what_if/saturating_sum.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(SaturatingSumTest, StopsAtTheGreatestTime) {
  EXPECT_EQ(SaturatingSum(3, 4), 7);
  EXPECT_EQ(SaturatingSum(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSum(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSum(INT64_MAX, INT64_MAX), INT64_MAX);
}

}  // namespace
}  // namespace meridian
