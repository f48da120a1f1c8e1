#include "astra_bridge/calibration/segmented_line.h"

#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
constexpr double kLeastEngineNs = 10000;

std::vector<int64_t> SizesBy(int64_t factor) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1024; bytes <= 1 << 24; bytes *= factor) sizes.push_back(bytes);
  return sizes;
}

// An engine of 10 us and 1 byte per ns.
double EngineNs(int64_t bytes) { return 10000 + static_cast<double>(bytes); }

CorrectionPoint Point(int64_t bytes, double engine_ns, double measured_ns) {
  CorrectionPoint point;
  point.bytes = bytes;
  point.engine_ns = engine_ns;
  point.measured_ns = measured_ns;
  point.relative_error = 0.02;
  return point;
}

// What was measured as a function of bytes and the engine's time.
template <typename Measured>
std::vector<CorrectionPoint> Points(Measured measured_ns, int64_t factor = 4) {
  std::vector<CorrectionPoint> points;
  for (int64_t bytes : SizesBy(factor)) {
    points.push_back(Point(bytes, EngineNs(bytes), measured_ns(bytes, EngineNs(bytes))));
  }
  return points;
}

double PredictNs(const std::vector<CorrectionSegment>& segments, int64_t bytes, double engine_ns) {
  Corrections corrections;
  corrections.segments[0] = segments;
  return corrections.CorrectedNs(CommKind::kAllReduce, bytes, engine_ns);
}

double PredictNs(const std::vector<CorrectionSegment>& segments, int64_t bytes) {
  return PredictNs(segments, bytes, EngineNs(bytes));
}

TEST(SegmentedLineTest, AnEfficiencyIsOneSegment) {
  const SegmentedLine line(Points([](int64_t, double engine_ns) { return engine_ns / 0.8; }),
                           kLeastEngineNs);
  for (double penalty : {8.0, 2.0, 0.01}) {
    const std::vector<CorrectionSegment> segments = line.Fit(penalty);
    ASSERT_THAT(segments, SizeIs(1));
    EXPECT_EQ(segments[0].up_to_bytes, kNoEnd);
    EXPECT_NEAR(segments[0].overhead_ns, 0, 1e-6);
    EXPECT_NEAR(segments[0].efficiency, 0.8, 1e-9);
  }
}

// Another protocol from 64 KiB on: where between 16 and 64 KiB, nobody knows.
TEST(SegmentedLineTest, AJumpIsMetHalfWay) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 65536 ? engine_ns : 40000 + engine_ns;
  };
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(Points(measured_ns), kLeastEngineNs).Fit(1);
  ASSERT_THAT(segments, SizeIs(3));
  for (int64_t bytes : SizesBy(4)) {
    const double truth_ns = measured_ns(bytes, EngineNs(bytes));
    EXPECT_NEAR(PredictNs(segments, bytes) / truth_ns, 1, 0.1) << bytes;
  }
  // At the geometric mean of 16 and 64 KiB one line gives 42,768 and the other 82,768.
  EXPECT_NEAR(PredictNs(segments, 32768), 62768, 3000);
}

// Bytes cost three times as much from 4 MiB on.
TEST(SegmentedLineTest, ACliffIsTakenToBeHalfWay) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 4 << 20 ? engine_ns : 3 * engine_ns;
  };
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(Points(measured_ns), kLeastEngineNs).Fit(8);
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_EQ(segments[0].up_to_bytes, 2 << 20);
  EXPECT_NEAR(segments[0].efficiency, 1, 0.01);
  EXPECT_NEAR(segments[1].efficiency, 1.0 / 3, 0.01);
}

// Only the largest size lies behind the cliff. At steps of two that shows where it is; at steps of
// four one size is an outlier.
TEST(SegmentedLineTest, TheLastSizeAloneShowsASharpCliffOnly) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 16 << 20 ? engine_ns : 3 * engine_ns;
  };
  const std::vector<CorrectionSegment> sharp =
      SegmentedLine(Points(measured_ns, 2), kLeastEngineNs).Fit(4);
  ASSERT_THAT(sharp, SizeIs(2));
  EXPECT_NEAR(sharp[1].efficiency, 1.0 / 3, 1e-9);
  // 2^23.5
  EXPECT_EQ(sharp[0].up_to_bytes, 11863283);
  EXPECT_NEAR(PredictNs(SegmentedLine(Points(measured_ns, 4), kLeastEngineNs).Fit(4), 4 << 20) /
                  EngineNs(4 << 20),
              1, 0.1);
}

// Off by 3.4 standard deviations of hypot(0.02, 0.05).
TEST(SegmentedLineTest, OneSizeMakesNoSegment) {
  for (int64_t wild : SizesBy(2)) {
    if (wild == 16 << 20) continue;
    const std::vector<CorrectionSegment> segments =
        SegmentedLine(
            Points([&](int64_t bytes,
                       double engine_ns) { return bytes == wild ? 1.2 * engine_ns : engine_ns; },
                   2),
            kLeastEngineNs)
            .Fit(4);
    EXPECT_THAT(segments, SizeIs(1)) << wild;
  }
}

// However cheap segments are, fifteen sizes do not carry more than seven lines of two numbers.
TEST(SegmentedLineTest, ThereAreNoMoreNumbersThanSizes) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.4);
  for (int round = 0; round < 50; ++round) {
    for (int64_t factor : {2, 4, 1024}) {
      const std::vector<CorrectionPoint> points = Points(
          [&](int64_t, double engine_ns) { return engine_ns * std::exp(noise(random)); }, factor);
      const std::vector<CorrectionSegment> segments =
          SegmentedLine(points, kLeastEngineNs).Fit(1e-3);
      // Between two lines that jump there is a third segment, which has no numbers of its own.
      EXPECT_LE(segments.size(), points.size() - 1) << factor;
      if (points.size() < 4) {
        EXPECT_THAT(segments, SizeIs(1));
      }
    }
  }
}

// Groups of half or twice the engine's times, as other numbers of ranks have.
TEST(SegmentedLineTest, TimesDoNotFallWhereSegmentsEnd) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.3);
  size_t ends = 0;
  for (int round = 0; round < 200; ++round) {
    double walk = 0;
    const std::vector<CorrectionSegment> segments =
        SegmentedLine(Points(
                          [&](int64_t, double engine_ns) {
                            walk += noise(random);
                            return engine_ns * std::exp(walk);
                          },
                          2),
                      kLeastEngineNs)
            .Fit(1);
    for (size_t i = 0; i + 1 < segments.size(); ++i) {
      // Up to a third of the way to the next size.
      const int64_t bytes = segments[i].up_to_bytes;
      for (double engine_times : {0.5, 1.0, 2.0}) {
        const double engine_ns = engine_times * EngineNs(bytes);
        EXPECT_GT(PredictNs(segments, bytes + 1, engine_ns),
                  0.87 * PredictNs(segments, bytes, engine_ns))
            << bytes;
      }
      ++ends;
    }
  }
  EXPECT_GT(ends, 100u);
}

TEST(SegmentedLineTest, NamesOfKernelsEndSegments) {
  std::vector<CorrectionPoint> points = Points(
      [](int64_t bytes, double engine_ns) { return bytes < 65536 ? 0.9 * engine_ns : engine_ns; });
  const double unlikely = 1000;
  ASSERT_THAT(SegmentedLine(points, kLeastEngineNs).Fit(unlikely), SizeIs(1));
  for (CorrectionPoint& point : points) {
    point.protocol = point.bytes < 65536 ? "TREE_LL" : "RING_LL";
  }
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(points, kLeastEngineNs).Fit(unlikely);
  // With a middle.
  ASSERT_THAT(segments, SizeIs(3));
  EXPECT_NEAR(segments[0].efficiency, 1 / 0.9, 1e-6);
  EXPECT_NEAR(segments[2].efficiency, 1, 1e-6);
}

// A name at one size alone is a protocol all the same, and times may fall there.
TEST(SegmentedLineTest, OneSizeMayHaveAProtocol) {
  std::vector<CorrectionPoint> points = Points(
      [](int64_t bytes, double engine_ns) { return bytes == 1024 ? 5 * engine_ns : engine_ns; });
  for (CorrectionPoint& point : points) {
    point.protocol = point.bytes == 1024 ? "TREE_LL" : "RING_LL";
  }
  const std::vector<CorrectionSegment> segments = SegmentedLine(points, kLeastEngineNs).Fit(8);
  EXPECT_NEAR(PredictNs(segments, 1024) / EngineNs(1024), 5, 1e-3);
  EXPECT_NEAR(PredictNs(segments, 4096) / EngineNs(4096), 1, 1e-3);
}

// Two runs at interleaved sizes, one of which takes 1.3 times as long: no zigzag.
TEST(SegmentedLineTest, GroupsThatDifferAreNoSegments) {
  std::vector<CorrectionPoint> points =
      Points([](int64_t, double engine_ns) { return engine_ns; }, 2);
  for (int64_t bytes : SizesBy(2)) {
    points.push_back(Point(3 * bytes / 2, EngineNs(3 * bytes / 2), 1.3 * EngineNs(3 * bytes / 2)));
    points.back().group = 1;
  }
  EXPECT_THAT(SegmentedLine(points, kLeastEngineNs).Fit(2), SizeIs(1));
}

TEST(SegmentedLineTest, TimesThatDoNotGrowAreAllowed) {
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(Points([](int64_t, double) { return 50000.0; }), kLeastEngineNs).Fit(1);
  // Efficiencies end at 100, and with them larger sizes take longer.
  for (int64_t bytes : SizesBy(4)) {
    if (bytes > 1 << 20) break;
    EXPECT_NEAR(PredictNs(segments, bytes), 50000, 10000) << bytes;
  }
  for (const CorrectionSegment& segment : segments) EXPECT_LE(segment.efficiency, 100.001);
}

TEST(SegmentedLineTest, SizesMayBeNeighbours) {
  const SegmentedLine line(
      {Point(1, 100, 100), Point(2, 101, 99), Point(3, 102, 500), Point(4, 103, 505)}, 10);
  const std::vector<CorrectionSegment> segments = line.Fit(0.5);
  ASSERT_GT(segments.size(), 1u);
  for (size_t i = 1; i < segments.size(); ++i) {
    EXPECT_GT(segments[i].up_to_bytes, segments[i - 1].up_to_bytes);
  }
  EXPECT_EQ(segments.back().up_to_bytes, kNoEnd);
  EXPECT_NEAR(PredictNs(segments, 2, 101), 100, 5);
  EXPECT_NEAR(PredictNs(segments, 3, 102), 500, 25);
}

}  // namespace
}  // namespace meridian
