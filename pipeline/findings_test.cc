#include "pipeline/findings.h"

#include <cstdint>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/run_report.pb.h"
#include "trace_alignment/combine/combine_report.pb.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Four ranks on two hosts, two steps of 20 ms, 40 % of them communication, clocks within 0.15 ms.
RunReport TwoHosts() {
  RunReport report;
  RunSummary& run = *report.mutable_run();
  run.set_ranks(4);
  run.set_steps(2);
  run.set_step_ms(20);
  run.set_step_mean_ms(20);
  run.set_events(1000);
  for (int64_t node : {0, 1}) {
    CombinedNode& described = *report.mutable_combine()->add_nodes();
    described.set_node_id(node);
    described.set_hostname(node == 0 ? "a" : "b");
    described.add_ranks(2 * node);
    described.add_ranks(2 * node + 1);
    described.set_offset_ns(-47'000'000 * node);
  }
  report.mutable_combine()->mutable_happens_before()->set_checked(10);
  Evidence& evidence = *report.mutable_evidence();
  evidence.set_job_ranks(4);
  evidence.set_clock_uncertainty_ms(0.15);
  evidence.set_collectives(12);
  evidence.set_complete_collectives(10);
  evidence.set_steps(2);
  evidence.set_common_steps(2);
  for (int64_t step : {0, 1}) {
    ReportedStep& row = *report.add_steps();
    row.set_step(step);
    row.set_start_ms(20.0 * static_cast<double>(step));
    row.set_end_ms(20.0 * static_cast<double>(step + 1));
    for (const auto& [kind, ms] : {std::pair<const char*, double>{"compute", 12},
                                   std::pair<const char*, double>{"communication", 8}}) {
      PathPart& part = *report.add_path();
      part.set_step(step);
      part.set_rank(0);
      part.set_kind(kind);
      part.set_ms(ms);
    }
  }
  for (const auto& [kind, label] :
       {std::pair<const char*, const char*>{"compute", "computation"},
        std::pair<const char*, const char*>{"communication", "communication"}}) {
    PathKind& named = *report.add_path_kinds();
    named.set_kind(kind);
    named.set_label(label);
    named.set_role(named.kind() == "communication" ? PathKind::TRANSFER : PathKind::COMPUTATION);
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

// Changes of one rank are those of rank 2.
void AddWhatIf(WhatIfPart::Change change, const std::string& what, double saved_ms,
               RunReport* report) {
  WhatIfPart& part = *report->add_what_if();
  part.set_change(change);
  if (change == WhatIfPart::RANK_AS_FAST_AS_OTHERS) part.set_rank(2);
  part.set_what(what);
  part.set_step_ms(20 - saved_ms);
  part.set_saved_ms(saved_ms);
}

std::string TextOf(RunReport report) {
  AddFindings(&report);
  return FindingsText(report);
}

// Returns the verdict about a topic, or "none".
std::string VerdictOf(RunReport report, const std::string& topic) {
  AddFindings(&report);
  for (const Finding& finding : report.findings()) {
    if (finding.topic() == topic) return finding.verdict();
  }
  return "none";
}

std::vector<std::string> ContradictionsOf(RunReport report) {
  AddFindings(&report);
  return FindContradictions(report);
}

// One is late in one step, the other in the next.
TEST(FindingsTest, RanksThatAreLateInTurnAreAllNamed) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  AddBlame(1, 1, 2.3, &report);
  AddBlame(0, 3, 0.3, &report);
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 as fast as the others", 0.01, &report);
  AddFindings(&report);
  const Finding& finding = report.findings(0);
  EXPECT_EQ(finding.topic(), "straggler");
  EXPECT_EQ(finding.verdict(), "bad");
  EXPECT_THAT(finding.headline(),
              HasSubstr("Rank 2 (host b) is late in 1 of 2 steps (0), rank 1 (host a) in 1; the "
                        "others wait for them for 12 % of the time."));
  EXPECT_THAT(finding.ranks(), ElementsAre(2, 1));
}

// In step 1 it is late by chance, a little beyond what clocks may be off by.
TEST(FindingsTest, StepsInWhichARankIsHardlyLateDoNotCount) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  AddBlame(1, 2, 0.5, &report);
  EXPECT_THAT(TextOf(report), HasSubstr("Rank 2 (host b) is late in 1 of 2 steps (0);"));
}

TEST(FindingsTest, WhoIsLateIsNamedWithHostShareAndReason) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  AddBlame(1, 2, 1.5, &report);
  AddBlame(0, 1, 0.5, &report);
  EXPECT_THAT(
      TextOf(report),
      HasSubstr("Rank 2 (host b) is late in 2 of 2 steps; the others wait for it for "
                "10 % of the time. Its host sleeps (step 0). Rests on all ranks of 10 of 12 "
                "collectives, 2 of 2 steps that all ranks have, clocks known "
                "within 150"));
  // Levelled, it would not help much; and another one was later once.
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 is as fast as the others", 0.5, &report);
  report.mutable_blame(2)->set_caused_ms(3);
  report.mutable_blame()->SwapElements(0, 2);
  EXPECT_THAT(TextOf(report), HasSubstr("a step would take 500 "));
  EXPECT_THAT(TextOf(report), HasSubstr("The longest single delay is that of rank 1"));
  // What is hardly anything is no finding.
  report.clear_blame();
  AddBlame(0, 2, 0.2, &report);
  EXPECT_THAT(TextOf(report), HasSubstr("No rank keeps the others waiting for long."));
}

TEST(FindingsTest, WhatCostsMostComesFirstButForDefects) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 4, &report);
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 is as fast as the others", 2, &report);
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 3, &report);
  AddFindings(&report);
  // A late rank can be mended, a network only be bought.
  EXPECT_EQ(report.findings(0).topic(), "straggler");
  EXPECT_EQ(report.findings(0).at_stake_ms(), 2);
  EXPECT_THAT(report.findings(0).ranks(), ElementsAre(2));
  // It shows most in the first step.
  EXPECT_EQ(report.findings(0).step(), 0);
  EXPECT_EQ(report.findings(0).end_ms(), 20);
  EXPECT_EQ(report.findings(0).at_stake_if(), "if it kept up with the others");
  EXPECT_THAT(report.findings(0).detail(),
              HasSubstr("What comes next would save more, if communication took half the time; "
                        "this comes first because it can be mended where it is."));
  EXPECT_EQ(report.findings(1).topic(), "network");
  EXPECT_EQ(report.findings(1).at_stake_ms(), 3);
}

TEST(FindingsTest, AForecastIsOfTheMeanStepAndSaysWhenItIsNotSure) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_step_mean_ms(22);
  ForecastReport& twice = *report.add_forecasts();
  twice.set_bandwidth(2);
  twice.set_compute(1);
  twice.set_latency(1);
  twice.set_ranks(report.run().ranks());
  twice.set_measured_step_ns(20e6);
  twice.set_step_ns(15e6);
  twice.set_low_ns(14e6);
  twice.set_high_ns(16e6);
  EXPECT_THAT(TextOf(report), HasSubstr("would take 16.5 ms in place of 22.0 ms in the mean, 90 % "
                                        "interval 15.4 ms to 17.6 ms (a forecast)."));
  report.mutable_forecasts(0)->set_high_ns(21e6);
  EXPECT_THAT(TextOf(report), HasSubstr("(a forecast; by its interval it may also save nothing)."));
}

TEST(FindingsTest, WaitingThatCostsNothingSaysSo) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 4, &report);
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 is as fast as the others", 0, &report);
  AddWhatIf(WhatIfPart::NO_HOST_TIME, "hosts take no time", 15, &report);
  for (PathKind& kind : *report.mutable_path_kinds()) kind.set_role(PathKind::HOST);
  AddFindings(&report);
  EXPECT_THAT(report.findings(0).headline(),
              HasSubstr("The hosts are what the run waits for: if hosts take no time, a step takes "
                        "5.00 ms, 15.0 ms less"));
  EXPECT_THAT(report.findings(0).detail(), HasSubstr("100 % of the critical path is on hosts"));
  EXPECT_EQ(report.findings(1).verdict(), "info");
  EXPECT_THAT(report.findings(1).headline(),
              HasSubstr("for 10 % of the time, which hardly makes a step longer."));
}

TEST(FindingsTest, AJobThatHangsSaysForWhomFirst) {
  ValidationReport dumps;
  EXPECT_FALSE(HangFinding(dumps).has_value());
  HangReport& hang = *dumps.add_hangs();
  hang.set_group("0 (world)");
  hang.set_seq(3);
  HangCall& call = *hang.add_calls();
  call.add_ranks(0);
  call.set_call("all_reduce of 4KiB Float");
  hang.add_missing_ranks(1);
  RunReport report = TwoHosts();
  *report.add_findings() = *HangFinding(dumps);
  AddFindings(&report);
  EXPECT_EQ(report.findings(0).headline(), "The job hangs: it waits for rank 1.");
  EXPECT_THAT(report.findings(0).detail(),
              HasSubstr("Call 3 of group 0 (world): rank 0 called all_reduce of 4KiB Float."));
  EXPECT_THAT(report.findings(0).ranks(), ElementsAre(1));
  hang.clear_missing_ranks();
  EXPECT_THAT(HangFinding(dumps)->headline(), HasSubstr("do not agree on a call"));
}

TEST(FindingsTest, WaitsOutsideOfStepsAreToldApart) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_step_word("period");
  report.mutable_run()->set_wall_ms(1000);
  for (const auto& [in_step, ms] : {std::make_pair(true, 0.1), std::make_pair(false, 900.0)}) {
    CombinedStep& wait = *report.mutable_combine()->add_step_waits();
    if (in_step) wait.set_step(0);
    wait.set_rank(3);
    wait.set_waited_ms(ms);
    wait.set_worst_ms(ms);
  }
  CombinedRank& rank = *report.mutable_combine()->add_ranks();
  rank.set_rank(3);
  rank.set_waited_ms(900.1);
  EXPECT_EQ(VerdictOf(report, "straggler"), "good");
  EXPECT_THAT(TextOf(report), HasSubstr("Outside of the periods ranks waited, too: rank 3 for up "
                                        "to 900 ms in one collective."));
}

// 40 ms in all. Why a profile begins late is not known.
TEST(FindingsTest, AProfileThatBeginsLateIsToldApart) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 4, &report);
  report.mutable_blame(0)->set_before_profile(true);
  report.mutable_blame(0)->set_reason("its profile begins later");
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  EXPECT_THAT(TextOf(report), HasSubstr("comes late at first is not known. At first the others "
                                        "wait 4.00 ms for it: its profile begins later. "));
  // The rank is late in another step, too.
  AddBlame(1, 2, 2, &report);
  EXPECT_THAT(
      TextOf(report),
      HasSubstr("is late in 1 of 2 steps (1); the others wait for it for 15 % "
                "of the time, most of it at first. At first the others wait 4.00 ms for it"));
  // Another rank's lateness is its own.
  AddBlame(1, 1, 3, &report);
  EXPECT_THAT(TextOf(report),
              AllOf(HasSubstr("Rank 1 (host a) is late"), Not(HasSubstr("At first"))));
}

TEST(FindingsTest, WaitingThatCostsNothingIsNoProblem) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 4, &report);
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 is as fast as the others", 4, &report);
  EXPECT_EQ(VerdictOf(report, "straggler"), "bad");
  report.clear_what_if();
  AddWhatIf(WhatIfPart::RANK_AS_FAST_AS_OTHERS, "rank 2 is as fast as the others", 0, &report);
  EXPECT_EQ(VerdictOf(report, "straggler"), "info");
  EXPECT_THAT(TextOf(report), HasSubstr("a step would hardly be shorter"));
}

TEST(FindingsTest, WhatWasOutsideOfTheStepsIsNoStepsLateness) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 1000, &report);
  report.mutable_blame(0)->clear_step();
  EXPECT_EQ(VerdictOf(report, "straggler"), "good");
}

TEST(FindingsTest, ExecutionsMatchedByOrderAloneAreNotGood) {
  RunReport report = TwoHosts();
  report.mutable_evidence()->set_matched_by_order(true);
  EXPECT_EQ(VerdictOf(report, "straggler"), "info");
  EXPECT_THAT(TextOf(report), HasSubstr("executions matched by their order alone"));
}

// Without steps a rank may be late in each of the 12 collectives by what the clocks are off.
TEST(FindingsTest, WithoutStepsEveryCollectiveCounts) {
  RunReport report = TwoHosts();
  report.mutable_run()->clear_step_ms();
  report.mutable_run()->clear_step_mean_ms();
  report.mutable_run()->set_wall_ms(40);
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  report.mutable_evidence()->set_clock_uncertainty_ms(0.01);
  EXPECT_EQ(VerdictOf(report, "straggler"), "good");
}

TEST(FindingsTest, APathThatCouldNotBeFoundLeavesItsAnswersUnknown) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_events(0);
  report.clear_path();
  ReportedStage& stage = *report.add_stages();
  stage.set_name("path");
  stage.set_state("failed");
  stage.set_note("a kernel ends before it begins");
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  EXPECT_EQ(VerdictOf(report, "network"), "unknown");
  EXPECT_THAT(TextOf(report), HasSubstr("a kernel ends before it begins"));
}

TEST(FindingsTest, LatenessThatClocksMayBeOffByIsNotKnown) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  report.mutable_evidence()->set_clock_uncertainty_ms(5);
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  EXPECT_THAT(TextOf(report),
              AllOf(HasSubstr("Whether a rank is late by less than 5.00 ms is not known."),
                    Not(HasSubstr("the one that does most"))));
  AddBlame(1, 1, 9, &report);
  EXPECT_EQ(VerdictOf(report, "straggler"), "bad");
}

TEST(FindingsTest, WaitingThatIsNobodysDoingIsNotGood) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_wall_ms(40);
  for (int64_t rank = 0; rank < 4; ++rank) {
    CombinedRank& wait = *report.mutable_combine()->add_ranks();
    wait.set_rank(rank);
    wait.set_waited_ms(8);
  }
  EXPECT_EQ(VerdictOf(report, "straggler"), "info");
  EXPECT_THAT(TextOf(report),
              HasSubstr("Ranks wait for each other for 20 % of the time, but none"));
}

TEST(FindingsTest, WhatIsLackingComesFirstAndLeavesTheRestUnknown) {
  RunReport report = TwoHosts();
  AddBlame(0, 2, 2.5, &report);
  report.mutable_evidence()->set_job_ranks(6);
  report.mutable_evidence()->add_missing_ranks(4);
  report.mutable_evidence()->add_missing_ranks(5);
  EXPECT_FALSE(CanCompareRanks(report.evidence()));
  EXPECT_THAT(TextOf(report), ::testing::StartsWith("No profile has the work of ranks 4-5 of 6."));
  EXPECT_THAT(TextOf(report), HasSubstr("4 of 6 ranks"));
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  EXPECT_EQ(VerdictOf(report, "network"), "unknown");
  report.mutable_evidence()->clear_missing_ranks();
  CombinedCoverage& lost = *report.mutable_evidence()->add_lost();
  lost.set_rank(1);
  lost.set_collectives(3);
  lost.set_expected(10);
  EXPECT_THAT(TextOf(report), ::testing::StartsWith("The profile of rank 1 has 3 of the 10 coll"));
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  report.mutable_evidence()->clear_lost();
  report.mutable_evidence()->add_unknown_clocks(3);
  EXPECT_THAT(TextOf(report), ::testing::StartsWith("Nothing ties the clock of rank 3"));
  EXPECT_EQ(VerdictOf(report, "clocks"), "unknown");
}

TEST(FindingsTest, ASlowLinkIsNamedWithWhatItCosts) {
  RunReport report = TwoHosts();
  report.mutable_combine()->set_link_ranks(4);
  EXPECT_EQ(VerdictOf(report, "links"), "unknown");
  report.mutable_combine()->set_link_ranks_compared(4);
  EXPECT_EQ(VerdictOf(report, "links"), "good");
  CombinedLink& link = *report.add_slow_links();
  link.set_rank(2);
  link.set_times_slower(2.5);
  link.set_cost_ms(7);
  link.set_transfers(30);
  link.set_compared_with(90);
  EXPECT_EQ(VerdictOf(report, "links"), "bad");
  EXPECT_THAT(TextOf(report),
              HasSubstr("The link of rank 2 (host b) is 2.5 times slower than the others'; if it "
                        "were not, a step would take 7.00 ms less."));
  EXPECT_THAT(TextOf(report), HasSubstr("Rests on 30 of its transfers beside 90 of others."));
  link.add_or_ranks(3);
  EXPECT_THAT(TextOf(report), HasSubstr("The link of rank 2 (host b) or rank 3 (host b) is"));
}

TEST(FindingsTest, ClocksSayHowFarOffTheyWereAndAre) {
  RunReport report = TwoHosts();
  report.mutable_combine()->mutable_happens_before()->set_violations_before(7);
  EXPECT_THAT(TextOf(report),
              HasSubstr("Clocks were up to 47.0 ms off and are now known within 150"));
  EXPECT_THAT(TextOf(report), Not(HasSubstr("90 % range")));
  EXPECT_THAT(TextOf(report), HasSubstr("7 of 10 collectives ended before they began"));
  CombinedNode& estimated = *report.mutable_combine()->mutable_nodes(1);
  estimated.set_method("collectives");
  estimated.set_uncertainty_ns(150'000);
  estimated.set_certified_uncertainty_ns(84'000'000);
  EXPECT_THAT(TextOf(report), HasSubstr("are now known within 150 µs (90 % range)."));
  report.mutable_combine()->mutable_happens_before()->set_violations_after(1);
  EXPECT_THAT(TextOf(report), HasSubstr("Clocks contradict 1 of 10 collectives."));
  report = TwoHosts();
  report.mutable_combine()->mutable_nodes(1)->set_offset_ns(100'000);
  EXPECT_THAT(TextOf(report), HasSubstr("Clocks agree"));
  EXPECT_EQ(VerdictOf(report, "clocks"), "good");
  // Known within a quarter of a step they do not tell who is late.
  report.mutable_evidence()->set_clock_uncertainty_ms(5);
  EXPECT_EQ(VerdictOf(report, "clocks"), "info");
}

TEST(FindingsTest, WhoIsNamedIsWhomTheBlameIsOf) {
  RunReport report = TwoHosts();
  // Beyond the clocks rank 3 is late by 0.3 ms of 40, which is not notable; in all rank 2 is.
  AddBlame(0, 3, 0.3, &report);
  for (const int64_t step : {0, 1}) AddBlame(step, 2, 0.15, &report);
  AddBlame(1, 2, 0.1, &report);
  EXPECT_EQ(MostLateRank(report), 2);
  EXPECT_THAT(
      TextOf(report),
      HasSubstr("For the one that does most, rank 2 (host b), they wait 1.0 % of the time"));
  // What is notable is no matter of clocks.
  AddBlame(1, 3, 0.6, &report);
  for (int i = 0; i < 10; ++i) AddBlame(0, 2, 0.14, &report);
  EXPECT_EQ(MostLateRank(report), 3);
  EXPECT_THAT(TextOf(report), HasSubstr("Rank 3 (host b) is late"));
  report.clear_blame();
  EXPECT_EQ(MostLateRank(report), std::nullopt);
}

TEST(FindingsTest, CountsReadAsTheyAreSaid) {
  RunReport report = TwoHosts();
  EXPECT_THAT(TextOf(report), HasSubstr("2 of 2 steps that all ranks have"));
  report.mutable_run()->set_step_word("execution");
  EXPECT_THAT(TextOf(report), HasSubstr("2 of 2 executions that all ranks have"));
  report.mutable_run()->clear_step_word();
  report.mutable_run()->set_steps(1500);
  EXPECT_THAT(TextOf(report), HasSubstr(": 1,500 steps of "));
  report.mutable_combine()->mutable_happens_before()->set_checked(1);
  EXPECT_THAT(TextOf(report), HasSubstr("Rests on 1 collective of which"));
}

TEST(FindingsTest, NetworkOrComputation) {
  RunReport report = TwoHosts();
  EXPECT_THAT(TextOf(report), HasSubstr("40 % of the critical path is exposed communication."));
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 4, &report);
  EXPECT_THAT(TextOf(report),
              HasSubstr("If it took half the time, a step would take 16.0 ms in place of 20.0 ms"));
  // Said once.
  EXPECT_EQ(VerdictOf(report, "what_if"), "none");
  report.mutable_what_if(0)->set_step_ms(19.999);
  report.mutable_what_if(0)->set_saved_ms(0.001);
  EXPECT_THAT(TextOf(report), HasSubstr("a step would take 20.0 ms as it does now"));
  report.mutable_what_if(0)->set_step_ms(16);
  report.mutable_what_if(0)->set_saved_ms(4);
  // What is beside it takes as long.
  report.mutable_what_if(0)->set_step_ms(19.9);
  report.mutable_what_if(0)->set_saved_ms(0.1);
  EXPECT_THAT(TextOf(report), HasSubstr("but a faster network would hardly help"));
  report.clear_what_if();
  for (PathPart& part : *report.mutable_path()) {
    if (part.kind() == "communication") part.set_ms(1);
  }
  EXPECT_THAT(TextOf(report),
              HasSubstr("Mostly not the network: 7.7 % of the critical path is exposed "
                        "communication, 92 % is computation."));
}

TEST(FindingsTest, LogsOfCollectivesAloneSayNothingAboutTheRest) {
  RunReport report = TwoHosts();
  report.clear_path();
  report.mutable_run()->set_wall_ms(40);
  report.mutable_evidence()->set_communication_only(true);
  CombinedRank& wait = *report.mutable_combine()->add_ranks();
  wait.set_transfer_ms(20);
  EXPECT_EQ(VerdictOf(report, "network"), "unknown");
  EXPECT_THAT(TextOf(report), HasSubstr("moves data for 50 % of the time"));
  report.mutable_run()->clear_step_ms();
  report.mutable_run()->set_events(9);
  EXPECT_THAT(TextOf(report), HasSubstr("communication alone does not tell them."));
}

TEST(FindingsTest, WhyARankIsLateIsNotKnownFromCommunicationAlone) {
  RunReport report = TwoHosts();
  report.clear_blame();
  report.mutable_evidence()->set_communication_only(true);
  report.mutable_evidence()->set_clock_uncertainty_ms(0.4);
  CombinedRank& last = *report.mutable_combine()->add_ranks();
  last.set_rank(1);
  last.set_last(6);
  last.set_collectives(6);
  last.set_caused_wait_ms(2.1);
  CombinedStep& wait = *report.mutable_combine()->add_step_waits();
  wait.set_rank(0);
  wait.set_worst_ms(2);
  EXPECT_EQ(VerdictOf(report, "straggler"), "unknown");
  EXPECT_THAT(TextOf(report), HasSubstr("keeps others waiting, once for 2.00 ms; why it is late"));
  EXPECT_THAT(TextOf(report), Not(HasSubstr("no rank is late")));
  // Within what the clocks are known nobody is.
  report.mutable_evidence()->set_clock_uncertainty_ms(3);
  EXPECT_THAT(TextOf(report), Not(HasSubstr("keeps others waiting")));
}

TEST(FindingsTest, PeriodsAreNotCalledSteps) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_step_word("period");
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 4, &report);
  EXPECT_THAT(TextOf(report), HasSubstr("2 periods of 20.0 ms in the median."));
  EXPECT_THAT(TextOf(report), HasSubstr("The profiles mark no steps"));
  EXPECT_THAT(TextOf(report), Not(HasSubstr("a step")));
}

TEST(FindingsTest, WhatIsNotKnownIsNotSaid) {
  EXPECT_THAT(TextOf(RunReport()), Not(HasSubstr("Clocks")));
  EXPECT_THAT(TextOf(RunReport()), Not(HasSubstr("network")));
}

TEST(ContradictionsTest, ARightReportHasNone) {
  RunReport report = TwoHosts();
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 4, &report);
  EXPECT_THAT(ContradictionsOf(report), IsEmpty());
}

TEST(ContradictionsTest, StepLengthsAreEverywhereEqual) {
  RunReport report = TwoHosts();
  report.mutable_run()->set_step_ms(25);
  EXPECT_THAT(ContradictionsOf(report),
              ElementsAre(HasSubstr("the header's step is not the median")));
  report = TwoHosts();
  report.mutable_path(0)->set_ms(14);
  EXPECT_THAT(ContradictionsOf(report), ElementsAre(HasSubstr("step 0 takes 20 ms, its path 22")));
  report = TwoHosts();
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 4, &report);
  report.mutable_what_if(0)->set_step_ms(10);
  EXPECT_THAT(ContradictionsOf(report), ElementsAre(HasSubstr("begins with a step of 14 ms")));
}

TEST(ContradictionsTest, HalvingCommunicationSavesNoMoreThanHalfOfIt) {
  RunReport report = TwoHosts();
  AddWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, "communication takes half the time", 8, &report);
  EXPECT_THAT(ContradictionsOf(report), ElementsAre("half of 40 % communication saves 40 %"));
}

TEST(ContradictionsTest, AFindingThatNeedsAllRanksIsNotMadeWithoutThem) {
  RunReport report = TwoHosts();
  AddFindings(&report);
  report.mutable_evidence()->add_missing_ranks(4);
  EXPECT_THAT(FindContradictions(report),
              ::testing::Contains(HasSubstr("needs ranks that are not known")));
}

}  // namespace
}  // namespace meridian
