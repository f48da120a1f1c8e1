#include "astra_bridge/calibration/report_text.h"

#include "astra_bridge/calibration/calibration_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NumberTextTest, OneDigitBehindThePoint) {
  EXPECT_EQ(Percent(0.1234), "12.3 %");
  EXPECT_EQ(SignedPercent(0.1234), "+12.3 %");
  EXPECT_EQ(SignedPercent(-0.0006), "-0.1 %");
}

TEST(NumberTextTest, NothingHasNoSign) {
  EXPECT_EQ(Percent(-1e-9), "0.0 %");
  EXPECT_EQ(SignedPercent(-1e-9), "+0.0 %");
}

CalibrationReport SmallReport() {
  CalibrationReport report;
  CalibratedCell* cell = report.add_cells();
  cell->set_kind("all-reduce");
  cell->set_bytes(65536);
  cell->set_group("{0,1,2,3} of 4");
  cell->set_repeats(11);
  cell->set_measured_ns(100000);
  cell->set_predicted_ns(110000);
  cell->set_signed_error(0.1);
  cell->set_held_out_ns(80000);
  CalibratedParameter* parameter = report.add_parameters();
  parameter->set_name("latency_ns[0]");
  parameter->set_value(30000);
  parameter->set_low(29000);
  parameter->set_high(31000);
  parameter->set_identifiable(true);
  report.mutable_fit()->set_n(1);
  report.mutable_fit()->set_mape(0.1);
  report.mutable_fit()->set_mape_small(0.1);
  report.mutable_fit()->set_p95(0.1);
  report.mutable_fit()->set_mean_signed_error(0.1);
  report.set_holdout_rule("size");
  report.set_noise_floor(0.05);
  CalibratedKind* fitted = report.add_calibrated_kinds();
  fitted->set_kind("all-reduce");
  fitted->set_most_ranks(4);
  PredictionError* error = report.add_prediction_errors();
  error->set_from_bytes(65536);
  error->set_factor(1.25);
  error->set_factor_per_doubling(2);
  report.add_notes("it was a sunny day");
  return report;
}

TEST(CalibrationTextTest, TablesAreOfCellsCorrectionsParametersAndErrors) {
  EXPECT_EQ(
      FormatCalibration(SmallReport()),
      R"(kind         bytes  group           repeats  measured us  predicted us    error  held out
----------  ------  --------------  -------  -----------  ------------  -------  --------
all-reduce  65,536  {0,1,2,3} of 4       11        100.0         110.0  +10.0 %   -20.0 %

parameter      value   95 % interval
-------------  -----  --------------
latency_ns[0]  30000  29000 to 31000

errors  cells    mean  >= 1 MiB   below     p95   signed
------  -----  ------  --------  ------  ------  -------
fitted      1  10.0 %            10.0 %  10.0 %  +10.0 %

noise floor (halves of the repeats differ by)  5.0 %

nine of ten predictions of  are within  per doubling of ranks
--------------------------  ----------  ---------------------
64KiB and more                  x 1.25                 x 2.00
note: it was a sunny day
)");
}

TEST(CalibrationTextTest, WhatIsNotKnownIsNotZero) {
  CalibrationReport report = SmallReport();
  report.clear_noise_floor();
  report.mutable_cells(0)->clear_held_out_ns();
  const std::string text = FormatCalibration(report);
  EXPECT_THAT(text, HasSubstr("noise floor (halves of the repeats differ by)  not known\n"));
  EXPECT_THAT(text, Not(HasSubstr("-20.0 %")));
}

SimulationCheckReport ReportOfOneCell() {
  SimulationCheckReport report;
  CheckedCell* cell = report.add_cells();
  cell->set_kind("all-reduce");
  cell->set_bytes(1048576);
  cell->set_group("{0,1} of 4");
  cell->set_repeats(8);
  cell->set_measured_ns(200000);
  cell->set_simulated_ns(150000);
  cell->set_signed_error(-0.25);
  cell->set_simulated_low_ns(100000);
  cell->set_simulated_high_ns(225000);
  report.mutable_cells_inside()->set_n(1);
  report.mutable_cells_inside()->set_inside(1);
  report.mutable_cells_inside()->set_promised(0.9);
  cell->add_reasons("group size not in the calibration");
  cell->add_reasons("computing beside");
  report.mutable_summary()->set_n(1);
  report.mutable_summary()->set_mape(0.25);
  report.mutable_summary()->set_p95(0.25);
  report.mutable_summary()->set_mean_signed_error(-0.25);
  report.add_notes("clocks were not checked");
  return report;
}

TEST(SimulationCheckTextTest, TablesAreOfWhatThereIs) {
  EXPECT_EQ(
      FormatSimulationCheck(ReportOfOneCell()),
      R"(kind            bytes  group       repeats  measured us  simulated us  nine of ten us    error  differs from the calibration by
----------  ---------  ----------  -------  -----------  ------------  --------------  -------  ---------------------------------------------------
all-reduce  1,048,576  {0,1} of 4        8        200.0         150.0  100.0 to 225.0  -25.0 %  group size not in the calibration; computing beside

errors           n    mean     p95   signed
---------------  -  ------  ------  -------
cells (medians)  1  25.0 %  25.0 %  -25.0 %
measured time inside the 90 % interval: 1 of 1 cells
note: clocks were not checked
)");
}

// Folders may be named anything.
TEST(SimulationCheckTextTest, NotesStayOnTheirLines) {
  SimulationCheckReport report;
  report.add_notes("a\nb\x1b[2J: 1 collectives end before they began");
  EXPECT_THAT(FormatSimulationCheck(report),
              HasSubstr("note: a?b?[2J: 1 collectives end before they began\n"));
}

TEST(SimulationCheckTextTest, StepsHaveATableOfTheirOwn) {
  SimulationCheckReport report = ReportOfOneCell();
  EXPECT_THAT(FormatSimulationCheck(report), Not(HasSubstr("replayed us")));
  report.add_steps()->set_run("a");
  CheckedStep* step = report.add_steps();
  step->set_run("b");
  step->set_step(7);
  step->set_measured_ns(2e6);
  step->set_simulated_ns(1e6);
  step->set_signed_error(-0.5);
  step->set_replayed_ns(1.9e6);
  step->set_simulated_low_ns(0.9e6);
  step->set_simulated_high_ns(1.2e6);
  EXPECT_THAT(FormatSimulationCheck(report),
              HasSubstr("run  step  measured us  simulated us   nine of ten us    error  "
                        "replayed us\n"));
  EXPECT_THAT(FormatSimulationCheck(report),
              HasSubstr("b    7          2000.0        1000.0  900.0 to 1200.0  -50.0 %       "
                        "1900.0\n"));
  EXPECT_THAT(FormatSimulationCheck(report), HasSubstr("a    all "));
}

}  // namespace
}  // namespace meridian
