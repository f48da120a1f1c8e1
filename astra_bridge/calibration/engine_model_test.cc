#include "astra_bridge/calibration/engine_model.h"

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A GiB/s is 2^30 bytes in 1e9 ns, so 1 MiB takes 2^20 / (50 * 2^30) s = 19531.25 ns, and a message
// of it 20031 ns with its latency, cut off to whole ns. Rings of all take 10 ns before and after
// every step.
TEST(EngineModelTest, TimesCellsOfRunsOfDifferentSizes) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> times_ns,
      EngineTimesNs(AssumedFabric({4}),
                    {EmptyCell(CollectiveKind::kAllGather, 1 << 20, {0, 1, 2, 3}, 4),
                     EmptyCell(CollectiveKind::kAllGather, 1 << 20, {0, 1}, 2),
                     EmptyCell(CollectiveKind::kPointToPoint, 1 << 20, {0, 1}, 2)}));
  EXPECT_THAT(times_ns,
              ElementsAre(DoubleNear(10 + 3 * (20031 + 10), 1e-6),
                          DoubleNear(10 + 1 * (20031 + 10), 1e-6), DoubleNear(20031, 1e-6)));
}

TEST(EngineModelTest, NothingTakesNoTime) {
  Fabric fabric = AssumedFabric({2});
  fabric.network.dimensions[0].latency_ns = 0;
  ASSERT_OK_AND_ASSIGN(
      const std::vector<double> times_ns,
      EngineTimesNs(fabric, {EmptyCell(CollectiveKind::kPointToPoint, 8, {0, 1}, 2)}));
  EXPECT_THAT(times_ns, ElementsAre(1));
}

TEST(EngineModelTest, AssumesTheSameOfEveryDimension) {
  Fabric shape = AssumedFabric({2});
  shape.network.dimensions.push_back({BlockShape::kSwitch, 4, 0.5, 0});
  shape.system.endpoint_delay_ns = 7;
  const Fabric assumed = WithAssumedParameters(shape);
  ASSERT_EQ(assumed.network.dimensions.size(), 2u);
  EXPECT_EQ(assumed.network.dimensions[1].shape, BlockShape::kSwitch);
  EXPECT_EQ(assumed.network.dimensions[1].npus, 4);
  EXPECT_EQ(assumed.network.dimensions[1].latency_ns, 500);
  EXPECT_EQ(assumed.network.dimensions[1].bytes_per_ns,
            AssumedFabric({2}).network.dimensions[0].bytes_per_ns);
}

TEST(EngineModelTest, TheLastDimensionGrowsWithTheRanks) {
  const Fabric levels = AssumedFabric({2, 2});
  EXPECT_EQ(FabricForRanks(levels, 16).network.npus(), 16);
  EXPECT_EQ(FabricForRanks(levels, 16).network.dimensions[0].npus, 2);
  EXPECT_EQ(FabricForRanks(AssumedFabric({2}), 8).network.npus(), 8);
  // Two ranks are one node; five are no number of nodes.
  EXPECT_EQ(FabricForRanks(levels, 2).network.npus(), 4);
  EXPECT_EQ(FabricForRanks(levels, 5).network.npus(), 4);
  const auto times = EngineTimesNs(levels, {EmptyCell(CollectiveKind::kAllReduce, 64, {0, 5}, 5)});
  EXPECT_TRUE(absl::IsInvalidArgument(times.status()));
  EXPECT_THAT(std::string(times.status().message()), HasSubstr("device 5"));
}

// A ring all-gather of 1 MiB in four takes 60,133 ns on the assumed fabric, as above.
TEST(EngineModelTest, CorrectionsAreOfKindAndBytes) {
  const TransferCell cell = EmptyCell(CollectiveKind::kAllGather, 1 << 20, {0, 1, 2, 3}, 4);
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllGather)] = {{1 << 10, 5},
                                                                         {1 << 20, 2}};
  EXPECT_THAT(PredictCellsNs(AssumedFabric({4}), corrections, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(2 * 60133, 1e-6))));
  EXPECT_THAT(PredictCellsNs(AssumedFabric({4}), {}, {cell}),
              IsOkAndHolds(ElementsAre(DoubleNear(60133, 1e-6))));
}

TEST(ErrorSummaryTest, ErrorsAreRelativeToWhatWasMeasured) {
  const ErrorSummary summary =
      SummariseErrors({{1024, 100, 110}, {1 << 20, 200, 140}, {1 << 21, 100, 100}});
  EXPECT_EQ(summary.n(), 3);
  EXPECT_NEAR(summary.mape(), (0.1 + 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mean_signed_error(), (0.1 - 0.3 + 0) / 3, 1e-12);
  EXPECT_NEAR(summary.mape_small(), 0.1, 1e-12);
  EXPECT_NEAR(summary.mape_large(), 0.15, 1e-12);
  // Between 0.1 and 0.3, a tenth of the way from the top.
  EXPECT_NEAR(summary.p95(), 0.28, 1e-12);
}

TEST(ErrorSummaryTest, PartsWithoutCellsAreAbsent) {
  EXPECT_FALSE(SummariseErrors({{1024, 100, 110}}).has_mape_large());
  EXPECT_FALSE(SummariseErrors({{1 << 20, 100, 110}}).has_mape_small());
  EXPECT_EQ(SummariseErrors({}).n(), 0);
}

}  // namespace
}  // namespace meridian
