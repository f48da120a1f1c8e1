#include "astra_bridge/calibration/calibration_notes.h"

#include <cmath>
#include <utility>
#include <vector>

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CalibratedCell* AddCell(CalibrationReport* report, int64_t bytes, int64_t group_size,
                        double signed_error) {
  CalibratedCell* cell = report->add_cells();
  cell->set_kind("all-reduce");
  cell->set_bytes(bytes);
  cell->set_group_size(group_size);
  cell->set_signed_error(signed_error);
  cell->set_fitted(true);
  return cell;
}

// Of two numbers of ranks, repeated, and all well.
CalibrationReport GoodReport() {
  CalibrationReport report;
  report.set_noise_floor(0.05);
  AddCell(&report, 1024, 2, 0.1);
  AddCell(&report, 2048, 4, -0.1);
  return report;
}

std::vector<std::string> NotesOf(const CalibrationReport& report) {
  const Fabric start = AssumedFabric(4);
  return CalibrationNotes({}, std::nullopt, start, {}, report);
}

TEST(CalibrationNotesTest, NothingIsSaidWhereAllIsWell) {
  EXPECT_THAT(NotesOf(GoodReport()), IsEmpty());
}

TEST(CalibrationNotesTest, CellsFarFromTheFitAreNamed) {
  CalibrationReport report = GoodReport();
  AddCell(&report, 8 << 20, 4, 0.4);
  AddCell(&report, 16 << 20, 4, -0.66);
  // Not fitted: no wonder.
  AddCell(&report, 32 << 20, 4, 3)->set_fitted(false);
  EXPECT_THAT(NotesOf(report),
              ElementsAre(HasSubstr("2 of the fitted cells are off by more than 30.0 %, most "
                                    "all-reduce of 16MiB (-66.0 %)")));
}

TEST(CalibrationNotesTest, OneNumberOfRanksIsNamed) {
  CalibrationReport report = GoodReport();
  report.mutable_cells(0)->set_group_size(4);
  EXPECT_THAT(NotesOf(report), ElementsAre(HasSubstr("all groups have 4 ranks")));
}

TEST(CalibrationNotesTest, AnUnknownNoiseFloorIsNamed) {
  CalibrationReport report = GoodReport();
  report.clear_noise_floor();
  EXPECT_THAT(NotesOf(report), ElementsAre(HasSubstr("noise floor is not known")));
}

TEST(CalibrationNotesTest, WaitingInTransfersIsNamed) {
  CalibrationReport report = GoodReport();
  report.mutable_arrival_spread()->set_slope(0.5);
  report.mutable_arrival_spread()->set_slope_standard_error(0.2);
  EXPECT_THAT(NotesOf(report), IsEmpty());
  report.mutable_arrival_spread()->set_slope_standard_error(0.1);
  EXPECT_THAT(NotesOf(report), ElementsAre(HasSubstr("slope 0.50")));
}

TEST(CalibrationNotesTest, TooManySizesAreNamed) {
  CalibrationReport report = GoodReport();
  for (int i = 0; i < 60; ++i) AddCell(&report, 10000 + i, 4, 0);
  EXPECT_THAT(NotesOf(report), ElementsAre(HasSubstr("all-reduce has 62 sizes")));
}

TEST(CalibrationNotesTest, ParametersThatAreNotToldAreNamed) {
  std::vector<FittedParameter> parameters(2);
  parameters[0].parameter = {EngineParameter::Kind::kLatency, 0};
  parameters[0].value = 500;
  parameters[0].kept = true;
  parameters[1].parameter = {EngineParameter::Kind::kBandwidth, 0};
  parameters[1].value = 2.5;
  const Fabric start = AssumedFabric(4);
  EXPECT_THAT(CalibrationNotes({}, std::nullopt, start, parameters, GoodReport()),
              ElementsAre(HasSubstr("latency_ns[0] is not identifiable from these transfers: it "
                                    "keeps 500"),
                          HasSubstr("bandwidth_gib_per_s[0] is not identifiable: 2.5 fits best")));
}

TEST(CalibrationNotesTest, ANetworkOfAnotherSizeIsNamed) {
  const Fabric topology = AssumedFabric(8);
  const Fabric start = AssumedFabric(4);
  EXPECT_THAT(CalibrationNotes({}, topology, start, {}, GoodReport()),
              Contains(HasSubstr("--topology has 8 NPUs; the network written has 4")));
}

TEST(CalibrationNotesTest, NotesOfRunsComeFirst) {
  CalibrationRun run;
  run.notes = {"ranks by file names"};
  const Fabric start = AssumedFabric(4);
  CalibrationReport report = GoodReport();
  report.clear_noise_floor();
  EXPECT_THAT(CalibrationNotes({run}, std::nullopt, start, {}, report),
              ElementsAre("ranks by file names", HasSubstr("noise floor")));
}

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
