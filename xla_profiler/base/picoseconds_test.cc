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

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Int64RangeTest, NarrowsWhatFitsAndNothingElse) {
  EXPECT_EQ(NarrowToInt64(0), 0);
  EXPECT_EQ(NarrowToInt64(kMin), kMin);
  EXPECT_EQ(NarrowToInt64(kMax), kMax);
  EXPECT_EQ(NarrowToInt64(absl::int128(kMin) - 1), std::nullopt);
  EXPECT_EQ(NarrowToInt64(absl::int128(kMax) + 1), std::nullopt);
}

TEST(Int64RangeTest, SaturatesToTheNearestThatFits) {
  EXPECT_EQ(SaturateToInt64(-7), -7);
  EXPECT_EQ(SaturateToInt64(absl::int128(kMin) - 1), kMin);
  EXPECT_EQ(SaturateToInt64(absl::int128(kMax) + 1), kMax);
  EXPECT_EQ(SaturateToInt64(absl::Int128Max()), kMax);
}

}  // namespace
}  // namespace meridian
