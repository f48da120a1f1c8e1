#include "astra_bridge/calibration/correction_points.h"

#include <map>

#include "astra_bridge/calibration/size_ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

CorrectionPoint Point(int64_t bytes, uint32_t group, double engine_ns, double measured_ns,
                      double relative_error) {
  CorrectionPoint point;
  point.bytes = bytes;
  point.group = group;
  point.engine_ns = engine_ns;
  point.least_engine_ns = engine_ns / 2;
  point.measured_ns = measured_ns;
  point.relative_error = relative_error;
  return point;
}

TransferCell Cell(CollectiveKind kind, std::vector<int32_t> participants, int32_t ranks) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = 1024;
  cell.ranks = ranks;
  cell.participants = std::move(participants);
  cell.median_ns = 300;
  cell.relative_error = 0.1;
  cell.protocol = "RING_LL";
  return cell;
}

TEST(MakeCorrectionPointsTest, CellsAreSortedByKind) {
  const std::vector<TransferCell> cells = {
      Cell(CollectiveKind::kAllReduce, {0, 1}, 4), Cell(CollectiveKind::kPointToPoint, {0, 1}, 4),
      Cell(CollectiveKind::kAllReduce, {2, 3}, 4), Cell(CollectiveKind::kAllReduce, {0, 1}, 4)};
  const std::vector<double> engine_ns = {10, 20, 30, 40};
  const std::vector<double> least_engine_ns = {5, 6, 7, 50};
  const PointsByKind points = MakeCorrectionPoints(cells, engine_ns, least_engine_ns);
  const auto& reduces = points[static_cast<size_t>(CollectiveKind::kAllReduce)];
  const auto& messages = points[static_cast<size_t>(CollectiveKind::kPointToPoint)];
  ASSERT_THAT(reduces, SizeIs(3));
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_THAT(points[static_cast<size_t>(CollectiveKind::kAllGather)], IsEmpty());
  EXPECT_EQ(reduces[0].group, reduces[2].group);
  EXPECT_NE(reduces[0].group, reduces[1].group);
  EXPECT_EQ(reduces[1].engine_ns, 30);
  EXPECT_EQ(reduces[1].least_engine_ns, 7);
  // What the group itself takes is not less.
  EXPECT_EQ(reduces[2].least_engine_ns, 40);
  EXPECT_EQ(reduces[1].measured_ns, 300);
  EXPECT_EQ(reduces[1].relative_error, 0.1);
  EXPECT_EQ(reduces[1].protocol, "RING_LL");
  EXPECT_EQ(reduces[0].ranks, 2);
  EXPECT_EQ(messages[0].ranks, 4);
}

TEST(MergeSizesTest, SizesThatCanBeToldApartStayAsTheyAre) {
  std::vector<CorrectionPoint> points;
  for (size_t i = 0; i < kMaxSizes; ++i) {
    points.push_back(Point(static_cast<int64_t>(i) + 1, 0, 10, 20, 0.1));
    points.push_back(Point(static_cast<int64_t>(i) + 1, 1, 10, 20, 0.1));
  }
  const std::vector<CorrectionPoint> merged = MergeSizes(points);
  ASSERT_THAT(merged, SizeIs(points.size()));
  for (size_t i = 0; i < merged.size(); ++i) EXPECT_EQ(merged[i].bytes, points[i].bytes);
}

// The bounds are the powers of two from 2^10 to 2^58, and all ranges but two have one size.
TEST(MergeSizesTest, NeighboursBecomeTheirGeometricMean) {
  std::vector<CorrectionPoint> points = {Point(1 << 10, 0, 100, 200, 0.03),
                                         Point(int64_t{1} << 58, 0, 100, 200, 0.03)};
  for (int i = 11; i < 58; ++i) points.push_back(Point(int64_t{5} << (i - 2), 0, 100, 200, 0.03));
  for (CorrectionPoint& point : points) point.protocol = "RING_LL";
  points.push_back(Point(3 << 19, 0, 400, 800, 0.04));
  points.push_back(Point(3 << 19, 1, 7, 9, 0.5));
  const std::vector<CorrectionPoint> merged = MergeSizes(points);
  std::map<int64_t, std::vector<CorrectionPoint>> by_bytes;
  for (const CorrectionPoint& point : merged) by_bytes[point.bytes].push_back(point);
  ASSERT_THAT(by_bytes, SizeIs(kMaxSizes));
  EXPECT_EQ(by_bytes.begin()->first, 1024);
  // 2^20 * sqrt(1.25 * 1.5) = 1435821.8
  const std::vector<CorrectionPoint>& both = by_bytes[1435822];
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_NEAR(both[0].engine_ns, 200, 1e-9);
  EXPECT_NEAR(both[0].least_engine_ns, 50, 1e-9);
  EXPECT_NEAR(both[0].measured_ns, 400, 1e-9);
  EXPECT_NEAR(both[0].relative_error, 0.05 / 2, 1e-12);
  EXPECT_EQ(both[0].protocol, "");
  EXPECT_EQ(both[1].group, 1u);
  EXPECT_NEAR(both[1].measured_ns, 9, 1e-9);
  EXPECT_EQ(by_bytes.begin()->second[0].protocol, "RING_LL");
}

}  // namespace
}  // namespace meridian
