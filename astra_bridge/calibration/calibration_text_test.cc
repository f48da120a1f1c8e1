#include "astra_bridge/calibration/calibration_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  CalibratedSegment* segment = report.add_segments();
  segment->set_kind("all-reduce");
  segment->set_up_to_bytes(32768);
  segment->set_overhead_ns(-2.8e-7);
  segment->set_efficiency(0.5);
  segment = report.add_segments();
  segment->set_kind("all-reduce");
  segment->set_overhead_ns(12340);
  segment->set_efficiency(1.25);
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
  report.add_notes("it was a sunny day");
  return report;
}

TEST(CalibrationTextTest, TablesAreOfCellsCorrectionsParametersAndErrors) {
  EXPECT_EQ(
      FormatCalibration(SmallReport()),
      R"(kind         bytes  group           repeats  measured us  predicted us    error  held out
----------  ------  --------------  -------  -----------  ------------  -------  --------
all-reduce  65,536  {0,1,2,3} of 4       11        100.0         110.0  +10.0 %   -20.0 %

correction  up to bytes  overhead us  efficiency
----------  -----------  -----------  ----------
all-reduce       32,768          0.0       0.500
all-reduce          all         12.3       1.250

parameter      value   95 % interval
-------------  -----  --------------
latency_ns[0]  30000  29000 to 31000

errors  cells    mean  >= 1 MiB   below     p95   signed
------  -----  ------  --------  ------  ------  -------
fitted      1  10.0 %            10.0 %  10.0 %  +10.0 %
noise floor (halves of the repeats differ by)  5.0 %
transfer against arrival spread  slope 0.000 +- 0.000
transfer minus shortest duration  median 0.0 us, p95 0.0 us
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

}  // namespace
}  // namespace meridian
