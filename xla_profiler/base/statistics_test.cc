#include "xla_profiler/base/statistics.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(StatisticsTest, MediansOfOddAndEvenCounts) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(LowerMedian<int64_t>({4, 1, 3, 2}), 2);
  EXPECT_EQ(UpperMedian<int64_t>({4, 1, 3, 2}), 3);
  EXPECT_EQ(LowerMedian<int64_t>({5, 1, 3}), 3);
  EXPECT_EQ(UpperMedian<int64_t>({5, 1, 3}), 3);
}

TEST(StatisticsTest, QuantilesInterpolate) {
  EXPECT_EQ(Quantile({0, 10, 20, 30, 40}, 0.25), 10);
  EXPECT_EQ(Quantile({0, 10, 20, 30, 40}, 0.95), 38);
  EXPECT_EQ(Quantile({7}, 0.95), 7);
  EXPECT_EQ(Quantile({1, 2}, 1), 2);
}

}  // namespace
}  // namespace meridian
