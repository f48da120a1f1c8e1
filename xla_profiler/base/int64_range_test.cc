#include "xla_profiler/base/picoseconds.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

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
