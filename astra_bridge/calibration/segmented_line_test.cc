#include "astra_bridge/calibration/segmented_line.h"

#include <algorithm>
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
  point.least_engine_ns = std::min(kLeastEngineNs, engine_ns);
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
  return corrections.CorrectedNs(CollectiveKind::kAllReduce, bytes, engine_ns);
}

double PredictNs(const std::vector<CorrectionSegment>& segments, int64_t bytes) {
  return PredictNs(segments, bytes, EngineNs(bytes));
}

TEST(SegmentedLineTest, AnEfficiencyIsOneSegment) {
  const SegmentedLine line(Points([](int64_t, double engine_ns) { return engine_ns / 0.8; }));
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
  const std::vector<CorrectionSegment> segments = SegmentedLine(Points(measured_ns)).Fit(1);
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
  const std::vector<CorrectionSegment> segments = SegmentedLine(Points(measured_ns)).Fit(8);
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_EQ(segments[0].up_to_bytes, 2 << 20);
  EXPECT_NEAR(segments[0].efficiency, 1, 0.01);
  EXPECT_NEAR(segments[1].efficiency, 1.0 / 3, 0.01);
}

// Groups lie apart by 1.4, which each by itself does not show.
TEST(SegmentedLineTest, ACliffIsOneForGroupsThatLieApart) {
  std::vector<CorrectionPoint> points;
  for (uint32_t group : {0, 1}) {
    for (CorrectionPoint point : Points([&](int64_t bytes, double engine_ns) {
           return (bytes < 4 << 20 ? 1 : 2) * (group == 0 ? 1 : 1.4) * engine_ns;
         })) {
      point.group = group;
      points.push_back(point);
    }
  }
  const std::vector<CorrectionSegment> segments = SegmentedLine(points).Fit(0.1);
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_EQ(segments[0].up_to_bytes, 2 << 20);
}

// A pair that takes a tenth of what the engine charges others for nothing at all.
TEST(SegmentedLineTest, NoPointIsPredictedBelowZero) {
  std::vector<CorrectionPoint> points =
      Points([](int64_t, double engine_ns) { return engine_ns - 9000; });
  for (int64_t bytes : {1024, 4096}) {
    points.push_back(Point(bytes, 1000, 700));
    points.back().group = 1;
  }
  const std::vector<CorrectionSegment> segments = SegmentedLine(points).Fit(2);
  EXPECT_GT(PredictNs(segments, 1024, 1000), 0);
  for (const CorrectionSegment& segment : segments) {
    EXPECT_TRUE(std::isfinite(segment.overhead_ns) && std::isfinite(segment.efficiency));
  }
}

// Only the largest size lies behind the cliff. At steps of two that shows where it is; at steps of
// four one size is an outlier.
TEST(SegmentedLineTest, TheLastSizeAloneShowsASharpCliffOnly) {
  const auto measured_ns = [](int64_t bytes, double engine_ns) {
    return bytes < 16 << 20 ? engine_ns : 3 * engine_ns;
  };
  const std::vector<CorrectionSegment> sharp = SegmentedLine(Points(measured_ns, 2)).Fit(4);
  ASSERT_THAT(sharp, SizeIs(2));
  EXPECT_NEAR(sharp[1].efficiency, 1.0 / 3, 1e-9);
  // 2^23.5
  EXPECT_EQ(sharp[0].up_to_bytes, 11863283);
  EXPECT_NEAR(PredictNs(SegmentedLine(Points(measured_ns, 4)).Fit(4), 4 << 20) / EngineNs(4 << 20),
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
                   2))
            .Fit(4);
    EXPECT_THAT(segments, SizeIs(1)) << wild;
  }
}

// How many lines were fitted: all segments but the middles of jumps, which are their neighbours'
// mean.
size_t CountLines(const std::vector<CorrectionSegment>& segments) {
  size_t lines = segments.size();
  for (size_t i = 1; i + 1 < segments.size(); ++i) {
    const double mean_ns = (segments[i - 1].overhead_ns + segments[i + 1].overhead_ns) / 2;
    const double mean_slope = (1 / segments[i - 1].efficiency + 1 / segments[i + 1].efficiency) / 2;
    const bool is_middle = std::abs(segments[i].overhead_ns - mean_ns) < 1e-6 &&
                           std::abs(1 / segments[i].efficiency - mean_slope) < 1e-9;
    lines -= is_middle ? 1 : 0;
  }
  return lines;
}

// However cheap segments are. Three sizes would carry two lines that meet, and five three.
TEST(SegmentedLineTest, ThereAreNoMoreNumbersThanSizes) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.4);
  size_t most_lines = 0;
  for (int round = 0; round < 100; ++round) {
    for (size_t sizes : {1, 2, 3, 4, 5, 8, 15}) {
      std::vector<CorrectionPoint> points =
          Points([&](int64_t, double engine_ns) { return engine_ns * std::exp(noise(random)); }, 2);
      points.resize(sizes);
      const size_t lines = CountLines(SegmentedLine(points).Fit(1e-3));
      EXPECT_LE(lines, std::max<size_t>(1, sizes / 2)) << sizes;
      most_lines = std::max(most_lines, lines);
    }
  }
  EXPECT_GT(most_lines, 4u);
}

// Groups of a third or three times the engine's times, as other numbers of ranks have.
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
                          2))
            .Fit(1);
    for (size_t i = 0; i + 1 < segments.size(); ++i) {
      // Up to a third of the way to the next size.
      const int64_t bytes = segments[i].up_to_bytes;
      for (double engine_times : {1.0 / 3, 1.0, 3.0}) {
        const double engine_ns = std::max(kLeastEngineNs, engine_times * EngineNs(bytes));
        EXPECT_GT(PredictNs(segments, bytes + 1, engine_ns),
                  0.87 * PredictNs(segments, bytes, engine_ns))
            << bytes;
      }
      ++ends;
    }
  }
  EXPECT_GT(ends, 100u);
}

// The same where groups have no size in common.
TEST(SegmentedLineTest, TimesDoNotFallForGroupsOfOtherSizes) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.3);
  size_t ends = 0;
  for (int round = 0; round < 100; ++round) {
    double walk = 0;
    std::vector<CorrectionPoint> points = Points(
        [&](int64_t, double engine_ns) { return engine_ns * std::exp(walk += noise(random)); }, 2);
    walk = 0;
    for (int64_t bytes : SizesBy(2)) {
      const double engine_ns = 2 * EngineNs(3 * bytes / 2);
      points.push_back(
          Point(3 * bytes / 2, engine_ns, engine_ns * std::exp(walk += noise(random))));
      points.back().group = 1;
    }
    const std::vector<CorrectionSegment> segments = SegmentedLine(points).Fit(1);
    for (size_t i = 0; i + 1 < segments.size(); ++i) {
      const int64_t bytes = segments[i].up_to_bytes;
      if (bytes < 2048 || bytes > 8 << 20) continue;
      for (double times : {1.0, 2.0}) {
        EXPECT_GT(PredictNs(segments, bytes + 1, times * EngineNs(bytes)),
                  0.87 * PredictNs(segments, bytes, times * EngineNs(bytes)))
            << bytes;
      }
      ++ends;
    }
  }
  EXPECT_GT(ends, 50u);
}

TEST(SegmentedLineTest, NamesOfKernelsEndSegments) {
  std::vector<CorrectionPoint> points = Points(
      [](int64_t bytes, double engine_ns) { return bytes < 65536 ? 0.9 * engine_ns : engine_ns; });
  const double unlikely = 1000;
  ASSERT_THAT(SegmentedLine(points).Fit(unlikely), SizeIs(1));
  for (CorrectionPoint& point : points) {
    point.protocol = point.bytes < 65536 ? "TREE_LL" : "RING_LL";
  }
  const std::vector<CorrectionSegment> segments = SegmentedLine(points).Fit(unlikely);
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
  const std::vector<CorrectionSegment> segments = SegmentedLine(points).Fit(8);
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
  EXPECT_THAT(SegmentedLine(points).Fit(2), SizeIs(1));
}

TEST(SegmentedLineTest, TimesThatDoNotGrowAreAllowed) {
  const std::vector<CorrectionSegment> segments =
      SegmentedLine(Points([](int64_t, double) { return 50000.0; })).Fit(1);
  // Efficiencies end at 100, and with them larger sizes take longer.
  for (int64_t bytes : SizesBy(4)) {
    if (bytes > 1 << 20) break;
    EXPECT_NEAR(PredictNs(segments, bytes), 50000, 10000) << bytes;
  }
  for (const CorrectionSegment& segment : segments) EXPECT_LE(segment.efficiency, 100.001);
}

TEST(SegmentedLineTest, SizesMayBeNeighbours) {
  const SegmentedLine line(
      {Point(1, 100, 100), Point(2, 101, 99), Point(3, 102, 500), Point(4, 103, 505)});
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
