#include "critical_path/report/path_report.h"

#include <string>
#include <utility>

#include "critical_path/graph/critical_path.h"
#include "critical_path/job/rank_join.h"
#include "critical_path/report/path_report.pb.h"
#include "critical_path/testing/random_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// An operator of 30 us, a launch delay of 6 us and a kernel of 64 us after a gap of 0.
PathGraph Graph() {
  PathGraph graph;
  graph.window_start_ps = 1000000;
  graph.window_end_ps = 101000000;
  graph.lanes = {{3, TrackKind::kHost, "42", "7"}, {3, TrackKind::kDevice, "0", "20"}};
  GraphEvent op, kernel;
  op.name = graph.names.Intern("aten::\"mm\"");
  op.category = EventCategory::kCpuOp;
  op.position = 11;
  kernel.name = graph.names.Intern("gemm<float, 4>");
  kernel.lane = 1;
  kernel.category = EventCategory::kKernel;
  kernel.position = 12;
  kernel.step = 4;
  graph.events = {op, kernel};
  graph.instants = {{1000000, kNoEvent, true}, {1000000, 0, true},    {31000000, 0, false},
                    {37000000, 1, true},       {101000000, 1, false}, {101000000, kNoEvent, false}};
  graph.edges = {{0, 1, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing},
                 {1, 2, 30000000, 0, EdgeType::kOperator, BoundBy::kCpu},
                 {2, 3, 6000000, 1, EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead},
                 {3, 4, 64000000, 1, EdgeType::kOperator, BoundBy::kGpuCompute},
                 {4, 5, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing}};
  graph.end_instant = 5;
  return graph;
}

GraphSource Source() {
  GraphSource source;
  source.trace = "rank3.json";
  source.window = {"step", {1, 2}};
  source.notes = {"7 x something is missing"};
  return source;
}

PathReport Report() {
  const PathGraph graph = Graph();
  return ReportPath(Source(), graph, *FindLongestPath(graph));
}

TEST(PathReportTest, HasCountsLengthAndBreakdown) {
  const PathReport report = Report();
  EXPECT_EQ(report.nodes(), 6);
  EXPECT_EQ(report.critical_nodes(), 6);
  EXPECT_EQ(report.edges().at("operator"), 2);
  EXPECT_EQ(report.edges().at("dependency"), 2);
  EXPECT_EQ(report.edges().at("kernel_launch_delay"), 1);
  EXPECT_EQ(report.edges().at("kernel_kernel_delay"), 0);
  EXPECT_EQ(report.edges().at("sync_dependency"), 0);
  EXPECT_DOUBLE_EQ(report.length_us(), 100);
  EXPECT_EQ(report.breakdown_size(), 9);
  EXPECT_DOUBLE_EQ(report.breakdown().at("cpu_bound"), 30);
  EXPECT_DOUBLE_EQ(report.breakdown_percent().at("gpu_compute_bound"), 64);
  EXPECT_DOUBLE_EQ(report.breakdown().at("wait_for_other_ranks"), 0);
  EXPECT_DOUBLE_EQ(report.window_end_us() - report.window_start_us(), 100);
}

TEST(PathReportTest, ListsEventsByTheirShare) {
  const PathReport report = Report();
  ASSERT_EQ(report.events_size(), 3);
  EXPECT_EQ(report.events_total(), 3);
  EXPECT_EQ(report.events(0).event(), 12);
  EXPECT_EQ(report.events(0).name(), "gemm<float, 4>");
  EXPECT_EQ(report.events(0).rank(), 3);
  EXPECT_EQ(report.events(0).thread(), "20");
  EXPECT_DOUBLE_EQ(report.events(0).percent(), 64);
  EXPECT_EQ(report.events(2).bound_by(), "gpu_kernel_launch_overhead");
}

TEST(PathReportTest, IsReadable) {
  EXPECT_EQ(FormatPathReport(Report()),
            "critical path of rank3.json, 'step' 1..2: 100.000 us\n"
            "6 of 6 nodes and 5 edges; the window lasts 100.000 us\n"
            "\n"
            "spent on                        us      %\n"
            "--------------------------  ------  -----\n"
            "cpu_bound                   30.000  30.00\n"
            "gpu_compute_bound           64.000  64.00\n"
            "gpu_kernel_launch_overhead   6.000   6.00\n"
            "\n"
            "    us      %  spent on                    rank  step  event  name\n"
            "------  -----  --------------------------  ----  ----  -----  --------------\n"
            "64.000  64.00  gpu_compute_bound              3     4     12  gemm<float, 4>\n"
            "30.000  30.00  cpu_bound                      3           11  aten::\"mm\"\n"
            " 6.000   6.00  gpu_kernel_launch_overhead     3     4     12  gemm<float, 4>\n"
            "7 x something is missing\n");
}

TEST(PathReportTest, RunsOnProcessorsSayNothingOfGpus) {
  const PathGraph graph = Graph();
  GraphSource source = Source();
  source.without_gpus = true;
  const PathReport report = ReportPath(source, graph, *FindLongestPath(graph));
  EXPECT_DOUBLE_EQ(report.breakdown().at("compute_bound"), 64);
  EXPECT_THAT(FormatPathReport(report), Not(HasSubstr("gpu_")));
}

// Two ranks meet in each of five steps; rank 1 sleeps in step 2.
TEST(PathReportTest, StepsTellWhoWasLate) {
  JobMaker maker(2);
  int64_t at = 0;
  for (int64_t step = 0; step < 5; ++step) {
    const int64_t slept = step == 2 ? 50 : 0, transfer = 10;
    maker.Add(0, "mm", at, at + 20);
    const auto a =
        maker.Add(0, "all-reduce", at + 20, at + 20 + slept + transfer, BoundBy::kGpuCommunication);
    maker.Add(1, "mm", at + slept, at + slept + 20);
    const auto b = maker.Add(1, "all-reduce", at + slept + 20, at + 20 + slept + transfer,
                             BoundBy::kGpuCommunication);
    maker.Meet("all-reduce", step, {{0, a}, {1, b}});
    at += 20 + slept + transfer;
  }
  JobGraph job = std::move(maker).Make();
  for (RankGraph& rank : job.ranks) {
    for (size_t i = 0; i < rank.graph.events.size(); ++i) {
      rank.graph.events[i].step = static_cast<int64_t>(i / 2);
    }
  }
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  const PathReport report = ReportPath({}, joined->graph, *FindLongestPath(joined->graph));
  ASSERT_EQ(report.steps_size(), 5);
  EXPECT_FALSE(report.steps(1).has_rank());
  EXPECT_EQ(report.steps(2).rank(), 1);
  EXPECT_DOUBLE_EQ(report.steps(2).us(), 80e-6);
  EXPECT_DOUBLE_EQ(report.steps(2).blame_us(), 50e-6);
  EXPECT_EQ(report.steps(2).op(), "host_gap");
  EXPECT_EQ(report.steps(2).after(), "all-reduce");
  EXPECT_THAT(FormatPathReport(report), HasSubstr("host_gap between all-reduce and all-reduce"));
}

// Rank 0 begins its step 1 ns later than rank 1.
TEST(PathReportTest, WhatCameBeforeAStepIsNotInIt) {
  JobMaker maker(2);
  maker.Add(0, "short", 0, 900);
  maker.Add(1, "long", 0, 700);
  JobGraph job = std::move(maker).Make();
  job.ranks[0].graph.base_ns = 1;
  job.windows_are_chosen = true;
  for (RankGraph& rank : job.ranks) rank.graph.events[0].step = 5;
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  const PathReport report = ReportPath({}, joined->graph, *FindLongestPath(joined->graph));
  EXPECT_DOUBLE_EQ(report.length_us(), 900e-6);
  EXPECT_DOUBLE_EQ(report.before_step_us(), 1000e-6);
  EXPECT_EQ(report.breakdown().count("before_step"), 0);
  EXPECT_DOUBLE_EQ(report.breakdown_percent().at("gpu_compute_bound"), 100);
  ASSERT_EQ(report.events_size(), 1);
  // The step lasts from the middle of the ranks' starts, 0 and 1000 ps, to that of their ends, 700
  // and 1900 ps.
  ASSERT_EQ(report.steps_size(), 1);
  EXPECT_DOUBLE_EQ(report.steps(0).us(), 800e-6);
}

TEST(PathReportTest, ListsNoMoreEventsThanAPersonReads) {
  PathGraph graph = Graph();
  graph.events.assign(3000, graph.events[0]);
  graph.instants.assign(3001, graph.instants[0]);
  graph.edges.clear();
  for (InstantId instant = 0; instant < 3000; ++instant) {
    graph.edges.push_back(
        {instant, instant + 1, 1000000, instant, EdgeType::kOperator, BoundBy::kCpu});
  }
  graph.end_instant.reset();
  const PathReport report = ReportPath(Source(), graph, *FindLongestPath(graph));
  EXPECT_EQ(report.events_size(), kMaxReportedEvents);
  EXPECT_EQ(report.events_total(), 3000);
  EXPECT_THAT(FormatPathReport(report), AllOf(HasSubstr("... and 2,980 more\n")));
}

TEST(PathReportTest, NamesOfATraceDoNotSteerTheTerminal) {
  PathGraph graph = Graph();
  graph.events[0].name = graph.names.Intern("\x1b[2J");
  GraphSource source = Source();
  source.trace = "\x1b[2J";
  source.window.annotation = "\x1b[2J";
  EXPECT_THAT(FormatPathReport(ReportPath(source, graph, *FindLongestPath(graph))),
              Not(HasSubstr("\x1b")));
}

// Rank 1 comes 200 us after rank 0, 150 us of which it slept.
TEST(PathReportTest, SaysWhoKeptOthersWaiting) {
  JobMaker maker(2);
  const auto first = maker.Add(0, "psum", 0, 300'000'000, BoundBy::kGpuCommunication);
  maker.Add(1, "gemm", 150'000'000, 200'000'000);
  const auto last = maker.Add(1, "psum", 200'000'000, 300'000'000, BoundBy::kGpuCommunication);
  maker.Meet("all-reduce psum", 3, {{0, first}, {1, last}});
  const PathGraph graph = (*JoinRanks(std::move(maker).Make())).graph;
  const PathReport report = ReportPath(Source(), graph, *FindLongestPath(graph));
  ASSERT_EQ(report.blame_size(), 2);
  EXPECT_EQ(report.blame_total(), 2);
  EXPECT_EQ(report.blame(0).step(), 3);
  EXPECT_EQ(report.blame(0).rank(), 1);
  EXPECT_EQ(report.blame(0).op(), "host_gap");
  EXPECT_DOUBLE_EQ(report.blame(0).us(), 150);
  EXPECT_EQ(report.blame(1).op(), "gemm");
  EXPECT_DOUBLE_EQ(report.blame(1).us(), 50);
  ASSERT_EQ(report.blame_by_rank_size(), 2);
  EXPECT_DOUBLE_EQ(report.blame_by_rank(0).waited_us(), 200);
  EXPECT_DOUBLE_EQ(report.blame_by_rank(1).us(), 200);
  EXPECT_NEAR(report.blame_by_rank(1).percent(), 66.67, 0.01);
  EXPECT_THAT(FormatPathReport(report),
              HasSubstr("who kept others waiting\n\n"
                        "rank  kept others waiting, us  % of path  waited, us\n"
                        "----  -----------------------  ---------  ----------\n"
                        "   0                    0.000       0.00     200.000\n"
                        "   1                  200.000      66.67       0.000\n\n"
                        "step  rank  blame, us  op        spent on           others waited in\n"
                        "----  ----  ---------  --------  -----------------  ----------------\n"
                        "   3     1    150.000  host_gap  host_gap           all-reduce psum\n"
                        "   3     1     50.000  gemm      gpu_compute_bound  all-reduce psum\n"));
}

TEST(PathReportTest, OneRankHasNobodyToBlame) {
  EXPECT_EQ(Report().blame_by_rank_size(), 0);
  EXPECT_THAT(FormatPathReport(Report()), Not(HasSubstr("waiting")));
}

}  // namespace
}  // namespace meridian
