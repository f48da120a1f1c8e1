#include "astra_bridge/engine/simulation_report.h"

#include "astra_bridge/engine/simulation_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SimulationResult SmallResult() {
  SimulationResult result;
  result.finish_ns = {1000, 4000};
  result.nodes = {{1, 7, 500, 4000}};
  result.links = {{0, 1, 2, 3, 4096, 1000}};
  return result;
}

TEST(SimulationReportTest, HoldsWhatWasFound) {
  const SimulationReport report = MakeSimulationReport(SmallResult());
  EXPECT_EQ(report.makespan_ns(), 4000);
  ASSERT_EQ(report.npus_size(), 2);
  EXPECT_EQ(report.npus(1).id(), 1);
  EXPECT_EQ(report.npus(1).finish_ns(), 4000);
  ASSERT_EQ(report.nodes_size(), 1);
  EXPECT_EQ(report.nodes(0).rank(), 1);
  EXPECT_EQ(report.nodes(0).id(), 7u);
  EXPECT_EQ(report.nodes(0).issue_ns(), 500);
  ASSERT_EQ(report.links_size(), 1);
  EXPECT_EQ(report.links(0).bytes(), 4096);
  EXPECT_DOUBLE_EQ(report.links(0).utilization(), 0.25);
}

TEST(SimulationReportTest, IsReadable) {
  SimulationReport report = MakeSimulationReport(SmallResult());
  report.set_engine("embedded");
  report.set_congestion("aware");
  report.add_notes("odd\nnews");
  report.mutable_corrections()->set_corrected(3);
  report.mutable_corrections()->set_uncorrected(1);
  EXPECT_THAT(FormatSimulationReport(report),
              AllOf(HasSubstr("engine     embedded\n"), HasSubstr("makespan   4,000 ns\n"),
                    HasSubstr("corrected  3 of 4 collectives and messages\n"),
                    HasSubstr("note       odd?news\n"), HasSubstr("   1      4,000\n"),
                    // Device 2 is the first switch of a network of two.
                    HasSubstr("switch 0"), HasSubstr("25.0 %\n")));
  report = MakeSimulationReport(SimulationResult());
  EXPECT_THAT(FormatSimulationReport(report),
              AllOf(HasSubstr("makespan   0 ns\n"), Not(HasSubstr("node"))));
}

}  // namespace
}  // namespace meridian
