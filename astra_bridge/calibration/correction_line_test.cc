#include "astra_bridge/calibration/correction_line.h"

#include <cmath>

#include "gtest/gtest.h"

namespace meridian {
namespace {

// Of the smallest of these points.
constexpr double kLeastEngineNs = 10024;

// An engine of 10 us and 1 byte per ns, which two ranks take 1 us less of, at powers of four from 1
// KiB to 16 MiB.
template <typename Measured>
std::vector<CorrectionPoint> Points(Measured measured_ns) {
  std::vector<CorrectionPoint> points;
  for (int64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4) {
    CorrectionPoint point;
    point.bytes = bytes;
    point.engine_ns = 10000 + static_cast<double>(bytes);
    point.least_engine_ns = point.engine_ns - 1000;
    point.measured_ns = measured_ns(point.engine_ns);
    point.relative_error = 0.02;
    points.push_back(point);
  }
  return points;
}

TEST(CorrectionLineTest, AnEfficiencyHasNoOverhead) {
  const CorrectionLine line = FitCorrectionLine(Points([](double ns) { return ns / 0.8; }));
  EXPECT_EQ(line.overhead_ns, 0);
  EXPECT_NEAR(line.slope, 1.25, 1e-9);
}

TEST(CorrectionLineTest, AnOverheadShowsWhereSizesTellIt) {
  const CorrectionLine line = FitCorrectionLine(Points([](double ns) { return 40000 + 2 * ns; }));
  // Drawn towards zero a little.
  EXPECT_NEAR(line.overhead_ns, 40000, 2000);
  EXPECT_NEAR(line.slope, 2, 0.04);
}

// 15 % may be taken off; what is measured would have it all.
TEST(CorrectionLineTest, MostIsLeftOfTheLeastTime) {
  const CorrectionLine line = FitCorrectionLine(Points([](double ns) { return ns - 10000; }));
  EXPECT_NEAR(line.overhead_ns, -0.15 * kLeastEngineNs * line.slope, 1e-9);
  EXPECT_NEAR(line.TimeNs(kLeastEngineNs), 0.85 * kLeastEngineNs * line.slope, 1e-9);
}

TEST(CorrectionLineTest, ANegativeOverheadIsFoundWhereItIsAllowed) {
  const CorrectionLine line = FitCorrectionLine(Points([](double ns) { return 3 * ns - 3000; }));
  EXPECT_NEAR(line.overhead_ns, -3000, 300);
  EXPECT_NEAR(line.slope, 3, 0.03);
}

TEST(CorrectionLineTest, TimesThatDoNotGrowHaveALeastSlope) {
  const CorrectionLine line = FitCorrectionLine(Points([](double) { return 5e4; }));
  EXPECT_DOUBLE_EQ(line.slope, 0.01);
  EXPECT_GT(line.overhead_ns, 0);
}

TEST(CorrectionLineTest, OnePointIsAnEfficiency) {
  CorrectionPoint point;
  point.engine_ns = 20000;
  point.least_engine_ns = 10000;
  point.measured_ns = 30000;
  point.relative_error = 0.05;
  const CorrectionLine line = FitCorrectionLine({point});
  EXPECT_EQ(line.overhead_ns, 0);
  EXPECT_NEAR(line.slope, 1.5, 1e-9);
}

TEST(CorrectionLineTest, AnOutlierHardlyMovesTheLine) {
  std::vector<CorrectionPoint> points = Points([](double ns) { return ns; });
  points[3].measured_ns *= 10;
  const CorrectionLine line = FitCorrectionLine(points);
  EXPECT_NEAR(line.slope, 1, 0.03);
}

// Deviations are hypot(0.12, 0.05) = 0.13. Off by one: 1 / 2; by four: 1.5 * 4 - 1.5^2 / 2 = 4.875.
TEST(CorrectionLineTest, LossIsHalfTheSquareAndLessForOutliers) {
  CorrectionPoint point;
  point.engine_ns = 1000;
  point.measured_ns = 1000;
  point.relative_error = 0.12;
  EXPECT_DOUBLE_EQ(LossOf({0, 1}, point), 0);
  EXPECT_NEAR(LossOf({0, std::exp(0.13)}, point), 0.5, 1e-12);
  EXPECT_NEAR(LossOf({0, std::exp(-4 * 0.13)}, point), 4.875, 1e-12);
}

}  // namespace
}  // namespace meridian
