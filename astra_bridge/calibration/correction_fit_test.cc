#include "astra_bridge/calibration/correction_fit.h"

#include <cmath>
#include <limits>
#include <map>

#include "astra_bridge/calibration/size_ranges.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// Powers of four from 1 KiB to 16 MiB.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

// An engine of 10 us and 1 byte per ns, and what was measured as a function of both.
template <typename Measured>
std::vector<CorrectionPoint> Points(Measured measured_ns) {
  std::vector<CorrectionPoint> points;
  for (int64_t bytes : Sizes()) {
    const double engine_ns = 10000 + static_cast<double>(bytes);
    points.push_back({bytes, 0, engine_ns, measured_ns(bytes, engine_ns), 0.02});
  }
  return points;
}

double Predict(const std::vector<CorrectionSegment>& segments, int64_t bytes) {
  Corrections corrections;
  corrections.segments[0] = segments;
  return corrections.CorrectedNs(CommKind::kAllReduce, bytes, 10000 + static_cast<double>(bytes));
}

TEST(SegmentedLineTest, AnEfficiencyIsOneSegment) {
  const SegmentedLine line(Points([](int64_t, double engine_ns) { return engine_ns / 0.8; }),
                           10000);
  for (double penalty : SegmentPenalties()) {
    const std::vector<CorrectionSegment> segments = line.Fit(penalty);
    ASSERT_THAT(segments, SizeIs(1));
    EXPECT_EQ(segments[0].up_to_bytes, kNoEnd);
    EXPECT_NEAR(segments[0].overhead_ns, 0, 1);
    EXPECT_NEAR(segments[0].efficiency, 0.8, 1e-3);
  }
}

TEST(SegmentedLineTest, AnOverheadShowsWhereSizesTellIt) {
  const SegmentedLine line(
      Points([](int64_t, double engine_ns) { return 40000 + engine_ns / 0.5; }), 10000);
  const std::vector<CorrectionSegment> segments = line.Fit(4);
  ASSERT_THAT(segments, SizeIs(1));
  // Drawn towards zero a little.
  EXPECT_NEAR(segments[0].overhead_ns, 40000, 2000);
  EXPECT_NEAR(segments[0].efficiency, 0.5, 0.01);
}

// Another protocol from 64 KiB on: where between 16 and 64 KiB, nobody knows.
TEST(SegmentedLineTest, AJumpIsMetHalfWay) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 65536 ? engine_ns : 40000 + engine_ns;
  };
  const std::vector<CorrectionSegment> segments = SegmentedLine(Points(measured_ns), 10000).Fit(1);
  for (int64_t bytes : Sizes()) {
    const double truth_ns = measured_ns(bytes, 10000 + static_cast<double>(bytes));
    EXPECT_NEAR(Predict(segments, bytes) / truth_ns, 1, 0.1) << bytes;
  }
  // At the geometric mean of 16 and 64 KiB one line gives 42,768 and the other 82,768.
  EXPECT_GT(Predict(segments, 32768), 50000);
  EXPECT_LT(Predict(segments, 32768), 75000);
}

// Bytes cost three times as much from 4 MiB on.
TEST(SegmentedLineTest, ACliffIsTakenToBeHalfWay) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 4 << 20 ? engine_ns : 3 * engine_ns;
  };
  const std::vector<CorrectionSegment> segments = SegmentedLine(Points(measured_ns), 10000).Fit(4);
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_EQ(segments[0].up_to_bytes, 2 << 20);
  EXPECT_NEAR(segments[0].efficiency, 1, 0.01);
  EXPECT_NEAR(segments[1].efficiency, 1.0 / 3, 0.01);
  EXPECT_NEAR(segments[1].overhead_ns, 0, 1000);
}

TEST(SegmentedLineTest, TimesThatDoNotGrowAreAllowed) {
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(Points([](int64_t, double) { return 50000.0; }), 10000).Fit(1);
  for (int64_t bytes : Sizes()) EXPECT_NEAR(Predict(segments, bytes), 50000, 5000) << bytes;
  for (const CorrectionSegment& segment : segments) EXPECT_LE(segment.efficiency, 100.001);
}

TEST(SegmentedLineTest, OneSizeIsAnEfficiency) {
  const SegmentedLine line({{4096, 0, 20000, 30000, 0.05}}, 10000);
  const std::vector<CorrectionSegment> segments = line.Fit(1);
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_NEAR(segments[0].overhead_ns, 0, 1e-6);
  EXPECT_NEAR(segments[0].efficiency, 2.0 / 3, 1e-9);
}

TEST(SegmentedLineTest, SizesMayBeNeighbours) {
  const SegmentedLine line({{1, 0, 100, 100, 0.02}, {2, 0, 101, 500, 0.02}, {3, 0, 102, 90, 0.02}},
                           10);
  const std::vector<CorrectionSegment> segments = line.Fit(0.01);
  for (size_t i = 1; i < segments.size(); ++i) {
    EXPECT_GT(segments[i].up_to_bytes, segments[i - 1].up_to_bytes);
  }
  EXPECT_EQ(segments.back().up_to_bytes, kNoEnd);
}

TEST(SegmentedLineTest, NothingIsBelowZeroForTwoRanks) {
  // Grows by far more than the engine does.
  const std::vector<CorrectionSegment> segments =
      SegmentedLine({{1024, 0, 31000, 100000, 0.02}, {4096, 0, 34000, 200000, 0.02}}, 10000).Fit(4);
  for (const CorrectionSegment& segment : segments) {
    EXPECT_GE(segment.overhead_ns + 10000 / segment.efficiency, -1e-6);
  }
}

TEST(MergeSizesTest, SizesThatCanBeToldApartStayAsTheyAre) {
  std::vector<CorrectionPoint> points;
  for (size_t i = 0; i < kMaxSizes; ++i) {
    points.push_back({static_cast<int64_t>(i) + 1, 0, 10, 20, 0.1});
    points.push_back({static_cast<int64_t>(i) + 1, 1, 10, 20, 0.1});
  }
  const std::vector<CorrectionPoint> merged = MergeSizes(points);
  ASSERT_THAT(merged, SizeIs(points.size()));
  for (size_t i = 0; i < merged.size(); ++i) EXPECT_EQ(merged[i].bytes, points[i].bytes);
}

// The bounds are the powers of two from 2^10 to 2^58, and all ranges but two have one size.
TEST(MergeSizesTest, NeighboursBecomeTheirGeometricMean) {
  std::vector<CorrectionPoint> points = {{1 << 10, 0, 100, 200, 0.03},
                                         {int64_t{1} << 58, 0, 100, 200, 0.03}};
  for (int i = 11; i < 58; ++i) points.push_back({int64_t{5} << (i - 2), 0, 100, 200, 0.03});
  points.push_back({3 << 19, 0, 400, 800, 0.04});
  points.push_back({3 << 19, 1, 7, 9, 0.5});
  const std::vector<CorrectionPoint> merged = MergeSizes(points);
  std::map<int64_t, std::vector<CorrectionPoint>> by_bytes;
  for (const CorrectionPoint& point : merged) by_bytes[point.bytes].push_back(point);
  ASSERT_THAT(by_bytes, SizeIs(kMaxSizes));
  EXPECT_EQ(by_bytes.begin()->first, 1024);
  // 2^20 * sqrt(1.25 * 1.5) = 1435821.8
  const std::vector<CorrectionPoint>& both = by_bytes[1435822];
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_NEAR(both[0].engine_ns, 200, 1e-9);
  EXPECT_NEAR(both[0].measured_ns, 400, 1e-9);
  EXPECT_NEAR(both[0].relative_error, 0.05 / 2, 1e-12);
  EXPECT_EQ(both[1].group, 1u);
  EXPECT_NEAR(both[1].measured_ns, 9, 1e-9);
}

TEST(ChoosePenaltyTest, NoiseIsNotFollowed) {
  SyntheticOptions options;
  options.noise = 0.3;
  const Fabric truth = RingOf(4, 20000, 5);
  const std::vector<TransferCell> cells = MakeSyntheticCells(truth, {4}, options);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> engine_ns, EngineTimesNs(truth, cells));
  ASSERT_OK_AND_ASSIGN(const KindTimes least_ns, LeastEngineTimesNs(truth));
  const PenaltyChoice choice = ChoosePenalty(cells, engine_ns, least_ns);
  EXPECT_EQ(choice.penalty, SegmentPenalties()[0]);
  EXPECT_GE(choice.error, choice.best_error);
  const Corrections corrections = FitCorrections(cells, engine_ns, least_ns, choice.penalty);
  EXPECT_THAT(corrections.segments[static_cast<size_t>(CommKind::kPointToPoint)], SizeIs(0));
  for (CommKind kind : options.kinds) {
    EXPECT_THAT(corrections.segments[static_cast<size_t>(kind)], SizeIs(1)) << CommKindName(kind);
  }
}

TEST(ChoosePenaltyTest, TwoSizesLeaveNothingOut) {
  SyntheticOptions options;
  options.sizes = {1024, 1 << 20};
  const Fabric truth = RingOf(4, 20000, 5);
  const std::vector<TransferCell> cells = MakeSyntheticCells(truth, {4}, options);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> engine_ns, EngineTimesNs(truth, cells));
  ASSERT_OK_AND_ASSIGN(const KindTimes least_ns, LeastEngineTimesNs(truth));
  EXPECT_EQ(ChoosePenalty(cells, engine_ns, least_ns).penalty, SegmentPenalties()[0]);
}

}  // namespace
}  // namespace meridian
