#include "astra_bridge/calibration/robust_statistics.h"

#include <cmath>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(RobustStatisticsTest, MediansOfOddAndEvenCounts) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(RobustStatisticsTest, QuantilesInterpolate) {
  EXPECT_EQ(Quantile({0, 10, 20, 30, 40}, 0.25), 10);
  EXPECT_EQ(Quantile({0, 10, 20, 30, 40}, 0.95), 38);
  EXPECT_EQ(Quantile({7}, 0.95), 7);
  EXPECT_EQ(Quantile({1, 2}, 1), 2);
}

TEST(RobustStatisticsTest, TheErrorOfAMedianShrinksWithTheRootOfTheCount) {
  // Quartiles 100 and 140 of 80, 100, 120, 140, 160: 0.93 * 40 / sqrt(5) / 120.
  EXPECT_DOUBLE_EQ(RelativeErrorOfMedian({80, 100, 120, 140, 160}),
                   0.93 * 40 / std::sqrt(5.0) / 120);
}

TEST(RobustStatisticsTest, ErrorsAreNeitherTooSmallNorTakenFromTooFew) {
  EXPECT_EQ(RelativeErrorOfMedian({100, 100, 100, 100}), 0.02);
  EXPECT_EQ(RelativeErrorOfMedian({100, 101, 102}), 0.3);
}

TEST(RobustStatisticsTest, OneWildValueMovesNothing) {
  EXPECT_EQ(Median({1, 2, 3, 4, 1e9}), 3);
  EXPECT_LT(RelativeErrorOfMedian({99, 100, 100, 100, 101, 1e9}), 0.021);
}

TEST(RobustStatisticsTest, HalvesAreTakenInTurns) {
  // Medians 10 of {10, 10} and 12 of {12, 12}.
  EXPECT_DOUBLE_EQ(SplitHalfDifference({10, 12, 10, 12}), 0.2);
  EXPECT_EQ(SplitHalfDifference({10}), 0);
}

TEST(RobustStatisticsTest, HuberIsQuadraticThenLinear) {
  EXPECT_EQ(HuberLoss(1, 1.5), 0.5);
  EXPECT_EQ(HuberLoss(-1.5, 1.5), 1.125);
  EXPECT_EQ(HuberLoss(3, 1.5), 1.5 * 2.25);
  EXPECT_EQ(HuberWeight(-1, 1.5), 1);
  EXPECT_EQ(HuberWeight(3, 1.5), 0.5);
}

}  // namespace
}  // namespace meridian
