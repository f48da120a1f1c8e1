#include "astra_bridge/engine/simulation_report.h"

#include "astra_bridge/engine/simulated_times.pb.h"
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
}

TEST(SimulationReportTest, IsReadable) {
  SimulationReport report = MakeSimulationReport(SmallResult());
  report.set_engine("embedded");
  report.set_congestion("aware");
  report.add_notes("odd\nnews");
  EXPECT_THAT(FormatSimulationReport(report),
              AllOf(HasSubstr("engine     embedded\n"), HasSubstr("makespan   4,000 ns\n"),
                    HasSubstr("note       odd?news\n"), HasSubstr("   1      4,000             -"),
                    HasSubstr("   1     7       500      4,000\n")));
  report = MakeSimulationReport(SimulationResult());
  EXPECT_THAT(FormatSimulationReport(report),
              AllOf(HasSubstr("makespan   0 ns\n"), Not(HasSubstr("node"))));
}

TEST(SimulationReportTest, SaysWhatRanksDo) {
  SimulationResult result = SmallResult();
  for (const int64_t finish_ns : result.finish_ns) {
    result.activity.push_back({finish_ns, 500, 700, 300});
  }
  SimulationReport report = MakeSimulationReport(result);
  EXPECT_EQ(report.npus(0).exposed_communication_ns(), 300);
  EXPECT_EQ(report.times().simulated().makespan_ns(), report.makespan_ns());
  EXPECT_EQ(report.times().simulated().computing_ns(), 500);
  EXPECT_THAT(FormatSimulationReport(report), HasSubstr("simulated           0.004         0.001"));
}

TEST(SimulatedTimesTest, WhatWasMeasuredStandsBesideIt) {
  SimulatedTimes times;
  times.mutable_simulated()->set_makespan_ns(1'200'000);
  EXPECT_THAT(FormatTimes(times), Not(HasSubstr("measured")));
  times.set_measured_ns(1'000'000);
  *times.mutable_simulated() = ReportActivity({{1'050'000, 400'000, 650'000, 600'000}});
  EXPECT_EQ(times.simulated().idle_ns(), 50'000);
  EXPECT_THAT(FormatTimes(times), AllOf(HasSubstr("measured            1.000"),
                                        HasSubstr("simulated           1.050         0.400")));
}

}  // namespace
}  // namespace meridian
