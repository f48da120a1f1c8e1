#include "xla_profiler/base/picoseconds.h"

#include <limits>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(PicosecondsTest, RoundDownAndUpOnBothSidesOfZero) {
  EXPECT_EQ(FloorToNs(1999), 1);
  EXPECT_EQ(FloorToNs(-1), -1);
  EXPECT_EQ(FloorToNs(-2000), -2);
  EXPECT_EQ(CeilToNs(1), 1);
  EXPECT_EQ(CeilToNs(2000), 2);
  EXPECT_EQ(CeilToNs(-1999), -1);
}

TEST(PicosecondsTest, TheEndsOfInt64AreTimes) {
  EXPECT_EQ(FloorToNs(std::numeric_limits<int64_t>::min()), -9223372036854776);
  EXPECT_EQ(CeilToNs(std::numeric_limits<int64_t>::max()), 9223372036854776);
}

}  // namespace
}  // namespace meridian
