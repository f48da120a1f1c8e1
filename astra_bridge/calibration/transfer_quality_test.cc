#include "astra_bridge/calibration/transfer_quality.h"

#include <cmath>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TransferCell Cell(std::vector<double> arrival_spreads_ns, std::vector<double> transfers_ns) {
  TransferCell cell;
  cell.arrival_spreads_ns = std::move(arrival_spreads_ns);
  cell.transfers_ns = std::move(transfers_ns);
  SummariseCell(&cell);
  return cell;
}

// Half of the waiting is left in both; what cells differ by is not looked at.
TEST(MeasureArrivalSpreadTest, WaitingThatIsLeftIsASlope) {
  const ArrivalSpread spread = MeasureArrivalSpread(
      {Cell({0, 10, 20}, {100, 105, 110}), Cell({5, 105, 205}, {1000, 1050, 1100})});
  EXPECT_NEAR(spread.slope(), 0.5, 1e-12);
  EXPECT_NEAR(spread.slope_standard_error(), 0, 1e-6);
  EXPECT_EQ(spread.n(), 6);
}

// About their means: spreads -10, 0, 10 and transfers 2, -4, 2 of a median of 104, which cancels
// out. One freedom is left: sqrt((4 + 16 + 4) / 1 / 200).
TEST(MeasureArrivalSpreadTest, NoiseIsAnError) {
  const ArrivalSpread spread = MeasureArrivalSpread({Cell({0, 10, 20}, {104, 98, 104})});
  EXPECT_NEAR(spread.slope(), 0, 1e-12);
  EXPECT_NEAR(spread.slope_standard_error(), std::sqrt(0.12), 1e-12);
}

TEST(MeasureArrivalSpreadTest, SingleTransfersSayNothing) {
  const ArrivalSpread spread = MeasureArrivalSpread({Cell({7}, {100}), Cell({9}, {300})});
  EXPECT_EQ(spread.slope(), 0);
  EXPECT_EQ(spread.slope_standard_error(), 0);
  EXPECT_EQ(spread.n(), 2);
}

TEST(CheckTransferClocksTest, TransfersAreHeldAgainstShortestDurations) {
  CalibrationRun run;
  for (const auto& [transfer_ns, shortest_ns] :
       std::vector<std::pair<double, double>>{{100, 90}, {200, 200}, {400, 380}}) {
    TransferSample sample;
    sample.transfer_ns = transfer_ns;
    sample.shortest_duration_ns = shortest_ns;
    run.transfers.samples.push_back(sample);
  }
  const ClockCheck check = CheckTransferClocks({run});
  EXPECT_DOUBLE_EQ(check.median_difference_ns(), 10);
  // Nine tenths of the way from 10 to 20.
  EXPECT_DOUBLE_EQ(check.p95_difference_ns(), 19);
  EXPECT_DOUBLE_EQ(check.median_share(), 0.05);
}

}  // namespace
}  // namespace meridian
