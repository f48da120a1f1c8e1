#include "tools/pipeline/findings.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/pipeline/simulation_stage.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Four ranks on two hosts, two steps of 20 ms.
RunReport TwoHosts() {
  RunReport report;
  report.mutable_run()->set_ranks(4);
  report.mutable_run()->set_steps(2);
  report.mutable_run()->set_step_ms(20);
  for (int64_t node : {0, 1}) {
    ReportedNode& described = *report.add_nodes();
    described.set_node_id(node);
    described.set_hostname(node == 0 ? "a" : "b");
    described.add_ranks(2 * node);
    described.add_ranks(2 * node + 1);
    described.set_offset_ms(-47.0 * static_cast<double>(node));
    described.set_uncertainty_max_ms(0.15 * static_cast<double>(node));
  }
  report.mutable_happens_before()->set_checked(10);
  for (const auto& [kind, label, ms] :
       {std::tuple<const char*, const char*, double>{"compute", "computation", 24},
        {"communication", "communication", 16}}) {
    PathPart& part = *report.add_path();
    part.set_step(0);
    part.set_rank(0);
    part.set_kind(kind);
    part.set_ms(ms);
    PathKind& named = *report.add_path_kinds();
    named.set_kind(kind);
    named.set_label(label);
  }
  return report;
}

void AddBlame(int64_t step, int64_t rank, double ms, RunReport* report) {
  BlamePart& part = *report->add_blame();
  part.set_step(step);
  part.set_rank(rank);
  part.set_caused_ms(ms);
  part.set_share(ms / 20);
  part.set_reason("its host sleeps");
}

std::string TextOf(RunReport report) {
  AddFindings(&report);
  return FindingsText(report);
}

TEST(FindingsTest, WhoIsLateIsNamedWithHostShareAndReason) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  AddBlame(1, 2, 1.5, &report);
  AddBlame(0, 1, 0.5, &report);
  EXPECT_THAT(TextOf(report),
              HasSubstr("Rank 2 (host b) is late in 2 of 2 steps; the others wait for it for "
                        "10 % of the time. Its host sleeps (step 0).\n"));
  // Levelled, it would not help much; and another one was later once.
  WhatIfPart& level = *report.add_what_if();
  level.set_what("rank 2 is as fast as the others");
  level.set_step_ms(19.5);
  level.set_saved_ms(0.5);
  report.mutable_blame(2)->set_caused_ms(3);
  report.mutable_blame()->SwapElements(0, 2);
  EXPECT_THAT(TextOf(report), HasSubstr("a step would take 500 "));
  EXPECT_THAT(TextOf(report), HasSubstr("The longest single delay is that of rank 1"));
  // What is hardly anything is no finding.
  report.clear_blame();
  AddBlame(0, 2, 0.1, &report);
  EXPECT_THAT(TextOf(report), HasSubstr("No rank keeps the others waiting for long."));
}

TEST(FindingsTest, ClocksSayHowFarOffTheyWereAndAre) {
  RunReport report = TwoHosts();
  report.mutable_happens_before()->set_violations_before(7);
  EXPECT_THAT(TextOf(report),
              HasSubstr("Clocks were up to 47.0 ms off and are now known within 150"));
  EXPECT_THAT(TextOf(report), HasSubstr("7 of 10 collectives ended before they began"));
  report.mutable_happens_before()->set_violations_after(1);
  EXPECT_THAT(TextOf(report), HasSubstr("Clocks contradict 1 of 10 collectives."));
  report.mutable_nodes(1)->set_method("unreachable");
  EXPECT_THAT(TextOf(report), HasSubstr("The clock of node 1 is not known"));
  report = TwoHosts();
  report.mutable_nodes(1)->set_offset_ms(0.1);
  EXPECT_THAT(TextOf(report), HasSubstr("Clocks agree"));
  // Collectives tie it to others, but not to the reference.
  report.mutable_nodes(1)->clear_offset_ms();
  report.mutable_nodes(1)->clear_uncertainty_max_ms();
  report.mutable_nodes(0)->set_uncertainty_max_ms(0);
  EXPECT_THAT(TextOf(report), HasSubstr("The clock of node 1 is not known"));
}

TEST(FindingsTest, NetworkOrComputation) {
  RunReport report = TwoHosts();
  EXPECT_THAT(TextOf(report), HasSubstr("40 % of the critical path is communication"));
  WhatIfPart& faster = *report.add_what_if();
  faster.set_what(kTwiceTheBandwidth);
  faster.set_step_ms(15);
  faster.set_saved_ms(5);
  faster.set_low_ms(14);
  faster.set_high_ms(16);
  EXPECT_THAT(TextOf(report),
              HasSubstr("At twice the bandwidth the step would take 15.0 ms (nine of "
                        "ten between 14.0 ms and 16.0 ms)"));
  WhatIfPart& gaps = *report.add_what_if();
  gaps.set_what("hosts have no gaps");
  gaps.set_step_ms(19);
  gaps.set_saved_ms(1);
  EXPECT_THAT(TextOf(report), HasSubstr("What would help most: if hosts have no gaps"));
  // A simulation that is far off says nothing about it.
  report.mutable_simulation()->set_mean_error(0.8);
  EXPECT_THAT(TextOf(report), HasSubstr("the simulation is too far off"));
  report.clear_simulation();
  report.mutable_path(1)->set_ms(2);
  EXPECT_THAT(TextOf(report), HasSubstr("Not the network: 7.7 % of the critical path is "
                                        "communication that nothing hides, 92 % is computation."));
}

TEST(FindingsTest, WhatIsNotKnownIsNotSaid) {
  EXPECT_THAT(TextOf(RunReport()), Not(HasSubstr("Clocks")));
  EXPECT_THAT(TextOf(RunReport()), Not(HasSubstr("network")));
}

}  // namespace
}  // namespace meridian
