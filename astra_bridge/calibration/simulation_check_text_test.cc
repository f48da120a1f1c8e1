#include "astra_bridge/calibration/simulation_check_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  cell->add_reasons("group size not in the calibration");
  cell->add_reasons("computing beside");
  CheckedReason* reason = report.add_reasons();
  reason->set_reason("computing beside");
  reason->set_cells(1);
  reason->set_mape(0.25);
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
      R"(kind            bytes  group       repeats  measured us  simulated us    error  set apart by
----------  ---------  ----------  -------  -----------  ------------  -------  ---------------------------------------------------
all-reduce  1,048,576  {0,1} of 4        8        200.0         150.0  -25.0 %  group size not in the calibration; computing beside

cells set apart by  cells  mean error
------------------  -----  ----------
computing beside        1      25.0 %

errors           n    mean     p95   signed
---------------  -  ------  ------  -------
cells (medians)  1  25.0 %  25.0 %  -25.0 %
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
  step->set_compute_share(0.125);
  EXPECT_THAT(
      FormatSimulationCheck(report),
      HasSubstr("run  step  measured us  simulated us    error  replayed us  computing beside\n"));
  EXPECT_THAT(
      FormatSimulationCheck(report),
      HasSubstr("b    7          2000.0        1000.0  -50.0 %       1900.0            12.5 %\n"));
  EXPECT_THAT(FormatSimulationCheck(report), HasSubstr("a    all "));
}

}  // namespace
}  // namespace meridian
