#include "pipeline/comparison.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/findings.h"
#include "report/run_report.pb.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void AddOperation(const std::string& name, const std::string& kind, double step_ms,
                  RunReport* report) {
  Operation& row = *report->add_operations();
  row.set_name(name);
  row.set_role(kind.empty() ? PathKind::COMPUTATION : PathKind::TRANSFER);
  row.set_kind(kind);
  if (!kind.empty()) row.set_bytes(4096);
  row.set_step_ms(step_ms);
  row.set_step_spread_ms(0.01 * step_ms);
  row.set_spread_of(5);
}

// Steps of 10 ms and a little more, of which `communication_ms` are exposed communication.
RunReport MakeRun(const std::vector<double>& steps_ms, double communication_ms) {
  RunReport report;
  report.mutable_run()->set_ranks(4);
  report.mutable_run()->set_step_ms(steps_ms.empty() ? 0 : steps_ms[0]);
  double now_ms = 0;
  for (size_t at = 0; at < steps_ms.size(); ++at) {
    const auto number = static_cast<int64_t>(at);
    ReportedStep& step = *report.add_steps();
    step.set_step(number);
    step.set_start_ms(now_ms);
    step.set_end_ms(now_ms += steps_ms[at]);
    for (const bool communicates : {false, true}) {
      PathPart& part = *report.add_path();
      part.set_step(number);
      part.set_kind(communicates ? "c" : "w");
      part.set_ms(communicates ? communication_ms : steps_ms[at] - communication_ms);
    }
  }
  for (const bool communicates : {false, true}) {
    PathKind& kind = *report.add_path_kinds();
    kind.set_kind(communicates ? "c" : "w");
    kind.set_label(communicates ? "communication" : "computation");
    kind.set_role(communicates ? PathKind::TRANSFER : PathKind::COMPUTATION);
  }
  AddOperation("gemm_1", "", 4, &report);
  AddOperation("softmax", "", 2, &report);
  AddOperation("all-reduce.1", "all-reduce", communication_ms, &report);
  return report;
}

const std::vector<double> kSteps = {10, 10.2, 9.9, 10.1, 10};

TEST(ComparisonTest, TwoRecordingsOfOneJobAreTheSame) {
  const Comparison result =
      CompareRuns(MakeRun(kSteps, 3), MakeRun({10.1, 10, 10.2, 10, 9.9}, 3.02));
  EXPECT_EQ(result.verdict(), Comparison::SAME);
  EXPECT_THAT(result.headline(), StartsWith("No difference: a step takes 10.0 ms"));
  for (const ComparedRow& row : result.parts()) EXPECT_EQ(row.verdict(), Comparison::SAME);
  for (const ComparedRow& row : result.operations()) EXPECT_EQ(row.verdict(), Comparison::SAME);
  EXPECT_FALSE(IsRegression(result, 0));
}

TEST(ComparisonTest, ASlowerNetworkIsNamedAndThePartsAddUp) {
  std::vector<double> slower;
  for (const double ms : kSteps) slower.push_back(ms + 3);
  const Comparison result = CompareRuns(MakeRun(kSteps, 3), MakeRun(slower, 6));
  EXPECT_EQ(result.verdict(), Comparison::LONGER);
  EXPECT_THAT(result.headline(), HasSubstr("3.00 ms (30 %) more than before, because of the "
                                           "network: exposed communication takes 3.00 ms more."));
  EXPECT_THAT(result.detail(), HasSubstr("The same transfers take 2.00 times as long."));
  double sum_ns = 0;
  for (const ComparedRow& row : result.parts()) sum_ns += row.change_ns();
  EXPECT_NEAR(sum_ns, result.step().change_ns(), 1e-3);
  EXPECT_EQ(result.parts(0).name(), "communication");
  EXPECT_EQ(result.differences(0).kind(), "network");
  EXPECT_TRUE(IsRegression(result, 0.05));
  EXPECT_FALSE(IsRegression(result, 0.5));
}

TEST(ComparisonTest, TheKernelThatTakesLongerComesFirst) {
  RunReport after = MakeRun(kSteps, 3);
  after.mutable_operations(1)->set_step_ms(2.6);
  const Comparison result = CompareRuns(MakeRun(kSteps, 3), after);
  ASSERT_GT(result.operations_size(), 0);
  EXPECT_EQ(result.operations(0).name(), "softmax");
  EXPECT_EQ(result.operations(0).verdict(), Comparison::LONGER);
  EXPECT_EQ(result.operations(1).verdict(), Comparison::SAME);
  EXPECT_THAT(result.detail(), HasSubstr("softmax changed most: it takes 1.30 times as long."));
  ASSERT_EQ(result.differences_size(), 1);
  EXPECT_EQ(result.differences(0).name(), "softmax");
  // It is also told where no step shows it.
  RunReport before = MakeRun(kSteps, 3);
  before.mutable_operations(1)->set_step_ms(0.05);
  for (RunReport* run : {&before, &after}) run->mutable_operations(1)->set_step_spread_ms(0.001);
  after.mutable_operations(1)->set_step_ms(0.065);
  EXPECT_THAT(CompareRuns(before, after).detail(),
              HasSubstr("softmax changed most: it takes 1.30 times as long."));
}

TEST(ComparisonTest, NamesThatAreNumberedAnewAreTheSameOperations) {
  RunReport after = MakeRun(kSteps, 3);
  after.mutable_operations(0)->set_name("gemm_7");
  AddOperation("dropout", "", 1, &after);
  const Comparison result = CompareRuns(MakeRun(kSteps, 3), after);
  ASSERT_EQ(result.operations_size(), 3);
  EXPECT_EQ(result.operations(0).name(), "dropout");
  EXPECT_EQ(result.operations(0).verdict(), Comparison::NEW);
  EXPECT_EQ(result.operations(1).verdict(), Comparison::SAME);
}

TEST(ComparisonTest, FewStepsAreNotCalledTheSame) {
  // A step of each: nobody knows what chance is.
  const Comparison one = CompareRuns(MakeRun({10}, 3), MakeRun({12}, 3));
  EXPECT_EQ(one.verdict(), Comparison::UNKNOWN);
  EXPECT_THAT(one.headline(), HasSubstr("that may be chance"));
  EXPECT_FALSE(IsRegression(one, 0.05));
  // Two that differ much among themselves.
  const Comparison two = CompareRuns(MakeRun({10, 14}, 3), MakeRun({15, 19}, 3));
  EXPECT_EQ(two.verdict(), Comparison::UNKNOWN);
  EXPECT_EQ(CompareRuns(MakeRun({}, 3), MakeRun(kSteps, 3)).headline(),
            "Whether the runs differ is not known.");
}

TEST(ComparisonTest, OtherNumbersOfRanksAreTold) {
  RunReport after = MakeRun(kSteps, 3);
  after.mutable_run()->set_ranks(8);
  const Comparison result = CompareRuns(MakeRun(kSteps, 3), after);
  EXPECT_THAT(result.notes(), ::testing::Contains("Ranks: 4 before, 8 now."));
}

// What one run does not tell is no change.
TEST(ComparisonTest, WhatOnlyOneRunTellsIsNotCompared) {
  RunReport after = MakeRun({12, 12.1, 12, 11.9}, 3);
  after.clear_path();
  const Comparison result = CompareRuns(MakeRun(kSteps, 3), after);
  EXPECT_EQ(result.verdict(), Comparison::LONGER);
  EXPECT_EQ(result.parts_size(), 0);
  EXPECT_EQ(result.ranks_size(), 0);
  EXPECT_THAT(result.headline(), ::testing::EndsWith("more than before."));
  // Operations beyond the longest are left out of reports: they are neither new nor gone.
  RunReport before = MakeRun(kSteps, 3);
  before.mutable_operations(1)->set_total_ms(100);
  for (size_t i = 3; i < kMostOperations; ++i) {
    AddOperation("other", std::string(i, 'x'), 1, &before);
    before.mutable_operations()->rbegin()->set_total_ms(50);
  }
  after = MakeRun(kSteps, 3);
  AddOperation("small", "", 1, &after);
  after.mutable_operations(3)->set_total_ms(40);
  const Comparison cut = CompareRuns(before, after);
  for (const ComparedRow& row : cut.operations()) EXPECT_NE(row.name(), "small");
}

TEST(ComparisonTest, AReportWithAComparisonBeginsWithIt) {
  RunReport report = MakeRun(kSteps, 3);
  *report.mutable_comparison() = CompareRuns(MakeRun(kSteps, 3), report);
  AddFindings(&report);
  AddComparisonFinding(&report);
  EXPECT_EQ(report.findings(0).topic(), "comparison");
  EXPECT_THAT(FindingsText(report), StartsWith("No difference"));
}

}  // namespace
}  // namespace meridian
