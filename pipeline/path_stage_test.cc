#include "pipeline/path_stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/xspace/device_work.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/what_if/testing/all_reduce_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipeline/findings.h"
#include "pipeline/operations.h"
#include "report/run_report.pb.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

absl::Status Describe(const PathGraph& graph, const PathStageOptions& options, RunReport* report) {
  const auto visit = [&](auto describe, auto merge) -> absl::Status {
    RETURN_IF_ERROR(describe({{GraphSource(), graph}, std::nullopt, 0, 1}));
    merge(0);
    return absl::OkStatus();
  };
  return DescribeWindows(visit, options, report).status();
}

// Rank 1 comes 100 us later: it computes 90 us longer, and its host has 10 us more of a gap.
class PathStageTest : public testing::Test {
 protected:
  void SetUp() override {
    PathStageOptions options;
    CombinedLink& slow = options.slow_links.emplace_back();
    slow.set_rank(1);
    slow.set_times_slower(2);
    ASSERT_OK(Describe(AllReduceJob({{10, 50, 5}, {20, 140, 5}}), options, &report_));
  }

  RunReport report_;
};

TEST_F(PathStageTest, ThePathIsTheWholeRun) {
  double path_ms = 0;
  for (const PathPart& part : report_.path()) path_ms += part.ms();
  EXPECT_NEAR(path_ms, report_.run().wall_ms(), 1e-9);
  EXPECT_NEAR(report_.run().wall_ms(), (20 + 140 + 5 + kTransferUs) * 1e-3, 1e-9);
  // There are no steps in it.
  EXPECT_EQ(report_.run().steps(), 0);
  EXPECT_FALSE(report_.run().has_step_ms());
}

TEST_F(PathStageTest, CommunicationHasTheRoleOfATransfer) {
  int transfers = 0;
  for (const PathKind& kind : report_.path_kinds()) {
    const bool is_transfer = kind.role() == PathKind::TRANSFER;
    EXPECT_EQ(is_transfer, kind.label() == "communication") << kind.label();
    transfers += is_transfer ? 1 : 0;
  }
  EXPECT_EQ(transfers, 1);
}

TEST_F(PathStageTest, WhoWasLateIsBlamedForWhatTookLonger) {
  ASSERT_GT(report_.blame_size(), 0);
  EXPECT_EQ(report_.blame(0).rank(), 1);
  EXPECT_NEAR(report_.blame(0).caused_ms(), 0.1, 1e-6);
  EXPECT_NEAR(report_.blame(0).share(), 0.1 / report_.run().wall_ms(), 1e-6);
  EXPECT_THAT(report_.blame(0).reason(), HasSubstr("90.0 µs longer"));
}

TEST_F(PathStageTest, WhatWouldHelpIsTheScheduleRunAgain) {
  bool levelled = false;
  for (const WhatIfPart& part : report_.what_if()) {
    EXPECT_NEAR(part.step_ms() + part.saved_ms(), report_.run().wall_ms(), 1e-9) << part.what();
    if (part.change() == WhatIfPart::LINK_AS_FAST_AS_OTHERS) {
      EXPECT_EQ(part.rank(), 1);
      EXPECT_EQ(part.what(), "the link of rank 1 is as fast as the others'");
      EXPECT_NEAR(part.saved_ms(), kTransferUs / 2 * 1e-3, 1e-6);
    }
    if (part.change() != WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
    EXPECT_EQ(part.rank(), 1);
    EXPECT_EQ(part.what(), "rank 1 is as fast as the others");
    levelled = true;
    EXPECT_NEAR(part.saved_ms(), 0.1, 1e-3);
  }
  EXPECT_TRUE(levelled);
}

// Beyond what the clocks may be off by nobody is late: then it is the rank that is blamed most.
TEST_F(PathStageTest, WhatWouldHelpIsAskedOfTheRankThatIsNamed) {
  for (const double uncertainty_ms : {0.0, 0.5}) {
    PathStageOptions options;
    options.clock_uncertainty_ms = uncertainty_ms;
    RunReport report;
    ASSERT_OK(Describe(AllReduceJob({{10, 50, 5}, {20, 140, 5}}), options, &report));
    EXPECT_EQ(report.evidence().clock_uncertainty_ms(), uncertainty_ms);
    int asked = 0;
    for (const WhatIfPart& part : report.what_if()) {
      if (part.change() != WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
      EXPECT_EQ(part.rank(), MostLateRank(report));
      ++asked;
    }
    EXPECT_EQ(asked, 1);
  }
}

TEST_F(PathStageTest, OperationsAreSummedWithoutWaiting) {
  // Calls of hosts are none.
  ASSERT_THAT(report_.operations(), SizeIs(1));
  const Operation& row = report_.operations(0);
  EXPECT_EQ(row.role(), PathKind::TRANSFER);
  EXPECT_EQ(row.count(), 2);
  EXPECT_NEAR(row.total_ms(), 2 * kTransferUs * 1e-3, 1e-9);
  EXPECT_NEAR(row.path_ms(), kTransferUs * 1e-3, 1e-9);
  EXPECT_FALSE(row.has_step_ms()) << "there are no steps";
}

TEST(OperationsTest, SaysWhichRankSpendsMost) {
  PathGraph graph = AllReduceJob({{10, 50, 5}, {20, 140, 5}});
  for (Lane& lane : graph.lanes) lane.kind = TrackKind::kDevice;
  for (GraphEvent& event : graph.events) event.step = 7;
  for (GraphEdge& edge : graph.edges) {
    if (edge.bound_by == BoundBy::kCpu) edge.bound_by = BoundBy::kGpuCompute;
  }
  RunReport report;
  ASSERT_OK(Describe(graph, PathStageOptions(), &report));
  ASSERT_THAT(report.operations(), SizeIs(2));
  const int at = report.operations(0).name() == "op" ? 0 : 1;
  const Operation& row = report.operations(at);
  EXPECT_EQ(row.role(), PathKind::COMPUTATION);
  EXPECT_NEAR(row.total_ms(), (50 + 140) * 1e-3, 1e-6);
  EXPECT_NEAR(row.mean_of_ranks_ms(), 95e-3, 1e-6);
  EXPECT_NEAR(row.step_ms(), 95e-3, 1e-6);
  EXPECT_EQ(row.spread_of(), 2);
  EXPECT_EQ(row.most_rank(), 1);
  EXPECT_NEAR(row.most_ms(), 140e-3, 1e-6);
  EXPECT_NEAR(row.path_ms(), 140e-3, 1e-6);
}

TEST(OperationsTest, MediansOfLongRunsAreOfSomeOfTheirSteps) {
  PathGraph graph = AllReduceJob({{10, 50, 5}, {20, 140, 5}});
  for (Lane& lane : graph.lanes) lane.kind = TrackKind::kDevice;
  constexpr size_t kSteps = 3 * OperationTable::kMostSteps;
  const auto visit = [&](auto describe, auto merge) -> absl::Status {
    for (size_t n = 0; n < kSteps; ++n) {
      // Odd numbers, as of programs that count otherwise.
      const int64_t number = 2 * static_cast<int64_t>(n) + 1;
      for (GraphEvent& event : graph.events) event.step = number;
      RETURN_IF_ERROR(describe({{GraphSource(), graph}, NumberRange{number, number}, n, kSteps}));
      merge(n);
    }
    return absl::OkStatus();
  };
  PathStageOptions options;
  options.can_compare_ranks = false;
  RunReport report;
  ASSERT_OK(DescribeWindows(visit, options, &report));
  ASSERT_THAT(report.operations(), SizeIs(2));
  for (const Operation& row : report.operations()) {
    EXPECT_EQ(row.count(), 2 * kSteps);
    const bool is_op = row.name() == "op";
    EXPECT_NEAR(row.total_ms(), kSteps * (is_op ? 190e-3 : 2 * kTransferUs * 1e-3), 1e-3);
    EXPECT_NEAR(row.step_ms(), is_op ? 95e-3 : kTransferUs * 1e-3, 1e-6);
    // Of a quarter of the steps, more or less; of computation on each of two ranks.
    const int64_t each = is_op ? 2 : 1;
    EXPECT_GT(row.spread_of(), each * OperationTable::kMostSteps / 2);
    EXPECT_LT(row.spread_of(), each * OperationTable::kMostSteps);
  }
}

TEST_F(PathStageTest, TheTimelineTellsWaitingFromTransfer) {
  const Timeline& timeline = report_.timeline();
  EXPECT_FALSE(timeline.truncated());
  ASSERT_THAT(timeline.collectives(), SizeIs(1));
  const TimelineCollective& members = timeline.collectives(0);
  ASSERT_THAT(members.events(), SizeIs(2));
  // Rank 0 comes first and waits, right before its transfer.
  ASSERT_THAT(members.waits(), SizeIs(2));
  EXPECT_EQ(members.waits(0), members.events(0) - 1);
  EXPECT_EQ(timeline.kinds(timeline.events().kind(members.waits(0))), "wait");
  EXPECT_EQ(members.waits(1), -1);
  double waited_us = 0, transfer_us = 0;
  for (int i = 0; i < timeline.events().lane_size(); ++i) {
    const std::string& kind = timeline.kinds(timeline.events().kind(i));
    if (kind == "wait") waited_us += timeline.events().duration_us(i);
    if (kind == "transfer") transfer_us += timeline.events().duration_us(i);
  }
  EXPECT_NEAR(waited_us, 100, 1e-6);
  EXPECT_NEAR(transfer_us, 2 * kTransferUs, 1e-6);
}

// Reports of runs as a whole and in windows of steps.
struct WindowedReports {
  RunReport whole;
  RunReport windows;
};

WindowedReports DescribeBoth(const std::vector<std::string>& traces, size_t window_work) {
  WindowedReports reports;
  for (RunReport* report : {&reports.whole, &reports.windows}) {
    ProfiledRun profiled;
    PathStageOptions options;
    options.profiled = &profiled;
    options.window_work = report == &reports.windows ? window_work : size_t{1} << 40;
    EXPECT_THAT(DescribePath(FileSystem::Posix(), traces, options, report), IsOk());
  }
  EXPECT_THAT(reports.whole.notes(), Not(Contains(HasSubstr("windows of steps"))));
  EXPECT_THAT(reports.windows.notes(), Contains(HasSubstr("windows of steps")));
  std::vector<std::string> notes = {reports.windows.notes().begin(), reports.windows.notes().end()};
  notes.erase(std::remove_if(notes.begin(), notes.end(),
                             [](const std::string& note) {
                               return absl::StrContains(note, "windows of steps");
                             }),
              notes.end());
  EXPECT_THAT(notes, UnorderedElementsAreArray(reports.whole.notes()));
  return reports;
}

// Returns how much of the path's time is booked otherwise, as a share.
double PathDifference(const WindowedReports& reports) {
  std::map<std::tuple<int64_t, int64_t, std::string>, double> differences;
  double whole_ms = 0, different_ms = 0;
  for (const PathPart& part : reports.whole.path()) {
    differences[{part.step(), part.rank(), part.kind()}] += part.ms();
    whole_ms += part.ms();
  }
  for (const PathPart& part : reports.windows.path()) {
    differences[{part.step(), part.rank(), part.kind()}] -= part.ms();
  }
  for (const auto& [key, ms] : differences) different_ms += std::abs(ms);
  return different_ms / whole_ms;
}

double SumOfBlame(const RunReport& report) {
  double sum_ms = 0;
  for (const BlamePart& part : report.blame()) sum_ms += part.caused_ms();
  return sum_ms;
}

void ExpectSameSteps(const WindowedReports& reports) {
  const RunReport &whole = reports.whole, &windows = reports.windows;
  EXPECT_EQ(whole.run().events(), windows.run().events());
  EXPECT_NEAR(whole.run().wall_ms(), windows.run().wall_ms(), 1e-6);
  EXPECT_NEAR(whole.run().step_mean_ms(), windows.run().step_mean_ms(), 1e-6);
  for (const WhatIfPart& part : windows.what_if()) {
    EXPECT_NEAR(part.step_ms() + part.saved_ms(), windows.run().step_mean_ms(), 1e-6)
        << part.what();
  }
  EXPECT_EQ(whole.evidence().steps(), windows.evidence().steps());
  EXPECT_EQ(whole.evidence().common_steps(), windows.evidence().common_steps());
  ASSERT_EQ(whole.steps_size(), windows.steps_size());
  for (int i = 0; i < whole.steps_size(); ++i) {
    EXPECT_EQ(whole.steps(i).step(), windows.steps(i).step());
    EXPECT_NEAR(whole.steps(i).start_ms(), windows.steps(i).start_ms(), 1e-6);
    EXPECT_NEAR(whole.steps(i).end_ms(), windows.steps(i).end_ms(), 1e-6);
  }
}

// Returns what the steps would take in the mean with a change of the run; nullopt where it was not asked.
std::optional<double> StepMsWith(WhatIfPart::Change change, const RunReport& report) {
  for (const WhatIfPart& part : report.what_if()) {
    if (part.change() == change) return part.step_ms();
  }
  return std::nullopt;
}

// Of a rank that is late windows are asked in their own way.
void ExpectNearlyTheSame(const WindowedReports& reports) {
  const RunReport &whole = reports.whole, &windows = reports.windows;
  ExpectSameSteps(reports);
  EXPECT_NEAR(SumOfBlame(windows), SumOfBlame(whole), 0.02 * SumOfBlame(whole));
  for (const WhatIfPart& part : whole.what_if()) {
    if (part.change() == WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
    const std::optional<double> step_ms = StepMsWith(part.change(), windows);
    ASSERT_TRUE(step_ms.has_value()) << part.what();
    EXPECT_NEAR(*step_ms, part.step_ms(), 0.02 * part.step_ms()) << part.what();
  }
}

void ExpectTheSame(const WindowedReports& reports) {
  const RunReport &whole = reports.whole, &windows = reports.windows;
  ExpectSameSteps(reports);
  EXPECT_NEAR(PathDifference(reports), 0, 1e-9);
  ASSERT_GT(whole.blame_size(), 0);
  EXPECT_NEAR(SumOfBlame(windows), SumOfBlame(whole), 1e-9);
  ASSERT_EQ(whole.what_if_size(), windows.what_if_size());
  for (int i = 0; i < whole.what_if_size(); ++i) {
    EXPECT_EQ(whole.what_if(i).what(), windows.what_if(i).what());
    EXPECT_NEAR(whole.what_if(i).saved_ms(), windows.what_if(i).saved_ms(), 1e-6);
  }
  ASSERT_EQ(whole.operations_size(), windows.operations_size());
  for (int i = 0; i < whole.operations_size(); ++i) {
    EXPECT_EQ(whole.operations(i).name(), windows.operations(i).name());
    EXPECT_EQ(whole.operations(i).count(), windows.operations(i).count());
    EXPECT_NEAR(whole.operations(i).step_ms(), windows.operations(i).step_ms(), 1e-6);
    EXPECT_NEAR(whole.operations(i).path_ms(), windows.operations(i).path_ms(), 1e-6);
  }
  EXPECT_EQ(whole.timeline().lanes_size(), windows.timeline().lanes_size());
  EXPECT_EQ(whole.timeline().collectives_size(), windows.timeline().collectives_size());
  ASSERT_EQ(whole.timeline().events().lane_size(), windows.timeline().events().lane_size());
  for (int i = 0; i < whole.timeline().events().lane_size(); ++i) {
    EXPECT_NEAR(whole.timeline().events().start_us(i), windows.timeline().events().start_us(i),
                1e-3);
  }
}

TEST(WindowsTest, SayTheSameOfAMadeUpRunAsItsWhole) {
  const TemporaryDirectory directory;
  SyntheticRunOptions run;
  run.ranks = 3;
  run.steps = 40;
  std::vector<std::string> traces;
  for (const XSpaceProto& profile : SyntheticRun(run)) {
    traces.push_back(
        directory.Write(absl::StrCat(traces.size(), ".xplane.pb"), profile.SerializeAsString()));
  }
  ExpectTheSame(DescribeBoth(traces, /*window_work=*/50));
}

WindowedReports DescribeCluster(const ClusterOptions& options, size_t window_work) {
  const SyntheticCluster cluster(options);
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  for (int64_t node = 0; node < options.nodes; ++node) {
    traces.push_back(directory.Write(absl::StrCat(node, ".xplane.pb"),
                                     TrueProfile(cluster, node).SerializeAsString()));
  }
  return DescribeBoth(traces, window_work);
}

// The profiles begin one after the other: the first collectives lack members. No profile marks
// steps, which are executions.
TEST(WindowsTest, CountWhatTheWholeRunHas) {
  ClusterOptions options;
  options.nodes = 4;
  options.steps = 40;
  options.session_spread_ns = 6'000'000;
  const WindowedReports reports = DescribeCluster(options, /*window_work=*/20);
  EXPECT_THAT(reports.windows.notes(), Contains(HasSubstr(" collective(s) lack members")));
  const Evidence& evidence = reports.windows.evidence();
  EXPECT_EQ(evidence.steps(), 40);
  EXPECT_EQ(evidence.common_steps(), reports.whole.evidence().common_steps());
  EXPECT_GT(evidence.common_steps(), 0);
  EXPECT_LT(evidence.common_steps(), evidence.steps());
}

// Rank 3 is late in every third step. Hosts launch a step shortly before the last has ended, so that
// their devices are never idle when they come.
TEST(WindowsTest, WhatALateRankCostsIsWhatTheRunTakesWithoutIt) {
  const auto describe = [](std::vector<Straggler> stragglers) {
    ClusterOptions options;
    options.nodes = 4;
    options.steps = 30;
    options.collectives = {{CollectiveKind::kAllReduce, 0, false},
                           {CollectiveKind::kAllGather, 0, false}};
    options.compute_kernels = 20;
    options.rest_ns = 200'000;
    options.stragglers = std::move(stragglers);
    return DescribeCluster(options, /*window_work=*/800);
  };
  const WindowedReports reports = describe({{3, 700'000, 3}}), without = describe({});
  for (const RunReport* report : {&reports.whole, &reports.windows}) {
    const double cost_ms = report->run().step_mean_ms() - without.whole.run().step_mean_ms();
    EXPECT_GT(cost_ms, 0.2);
    ASSERT_GT(report->blame_size(), 0);
    EXPECT_EQ(report->blame(0).rank(), 3);
    int answers = 0;
    for (const WhatIfPart& part : report->what_if()) {
      if (part.change() != WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
      EXPECT_EQ(part.rank(), 3);
      EXPECT_NEAR(part.saved_ms(), cost_ms, 0.1 * cost_ms);
      ++answers;
    }
    EXPECT_EQ(answers, 1);
  }
}

// Hosts run ahead of devices there, and work of two steps overlaps.
TEST(WindowsTest, SayNearlyTheSameOfRecordings) {
  for (const std::string name : {"jax_tp_cuda4", "jax_scan4", "jax_cpu4"}) {
    SCOPED_TRACE(name);
    std::vector<std::string> traces;
    for (int rank = 0; rank < 4; ++rank) {
      traces.push_back(absl::StrCat("examples/", name, "/rank", rank, ".xplane.pb.gz"));
    }
    const WindowedReports reports = DescribeBoth(traces, /*window_work=*/12);
    ExpectNearlyTheSame(reports);
    EXPECT_LT(PathDifference(reports), 0.02);
  }
}

// Steps of a millisecond, in each of which a rank computes, reduces, and computes again. Rank 1 takes
// 50 us longer. The device begins a step so long after its host does, which waits in each step for the
// end of the one before that. A copy of every seventh step outlasts that.
std::string KinetoText(int64_t rank, int ranks, int64_t steps, double lag_us) {
  constexpr double kStepUs = 1000;
  constexpr int64_t kIds = 20, kRecord = 7, kBackward = 200;
  const int64_t lag_steps = static_cast<int64_t>(lag_us / kStepUs);
  KinetoTrace trace;
  trace.set_rank(rank);
  trace.Op("before", -300, 20);
  for (int64_t step = 0; step < steps; ++step) {
    const double at = kStepUs * static_cast<double>(step), runs = at + lag_us;
    const double compute_us = rank == 1 ? 350 : 300;
    const int64_t id = kIds * (step + 1);
    trace.Annotation(absl::StrCat("ProfilerStep#", 5 + step), at, kStepUs - 10);
    trace.Op("aten::mm", at + 10, 90);
    trace.Call("cudaLaunchKernel", at + 20, 10, id);
    trace.Kernel("gemm", runs + 30, compute_us, 7, id);
    trace.Op("c10d::allreduce_", at + 110, 20);
    trace.Call("cudaLaunchKernelExC", at + 115, 5, id + 1);
    trace.AllReduce(runs + 30 + compute_us, 450 - compute_us, 7, id + 1, ranks, step);
    trace.Op("AddmmBackward0", at + 140, 100, kBackward);
    trace.Call("cudaLaunchKernel", at + 150, 10, id + 2, kBackward);
    trace.Kernel("gemm_backward", runs + 485, 200, 7, id + 2);
    trace.Call("cudaEventRecord", at + 260, 5, id + kRecord);
    if (step % 7 == 0) {
      trace.Call("cudaMemcpyAsync", at + 270, 5, id + 3);
      trace.Work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + 280, 900, 9, id + 3);
    }
    if (step >= lag_steps) {
      trace.Call("cudaEventSynchronize", at + 300, runs - lag_steps * kStepUs + 690 - at - 300,
                 id + 4);
      trace.EventSync("Event Sync", at + 300, 400, 7, id + 4, 7, id - kIds * lag_steps + kRecord);
    }
    trace.Op("outside", at + kStepUs - 8, 5);
  }
  return trace.Text();
}

std::vector<std::string> WriteKineto(int64_t steps, double lag_us,
                                     const TemporaryDirectory& directory) {
  std::vector<std::string> traces;
  for (int64_t rank = 0; rank < 3; ++rank) {
    traces.push_back(
        directory.Write(absl::StrCat(rank, ".json"), KinetoText(rank, 3, steps, lag_us)));
  }
  return traces;
}

// Also where the host is two steps ahead of its device.
TEST(WindowsTest, SayTheSameOfMadeUpKinetoTracesAsOfTheirWhole) {
  for (const double lag_us : {0.0, 2100.0}) {
    SCOPED_TRACE(lag_us);
    const TemporaryDirectory directory;
    const std::vector<std::string> traces = WriteKineto(/*steps=*/40, lag_us, directory);
    ExpectTheSame(DescribeBoth(traces, /*window_work=*/50));
  }
}

// Adds to the number behind each occurrence of a key in a text.
std::string AddToNumbers(absl::string_view key, int64_t added, absl::string_view text) {
  std::string out;
  for (size_t next = text.find(key); next != text.npos; next = text.find(key)) {
    absl::StrAppend(&out, text.substr(0, next + key.size()));
    text.remove_prefix(next + key.size());
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    int64_t number = 0;
    if (absl::SimpleAtoi(text.substr(0, digits), &number)) {
      absl::StrAppend(&out, number + added);
      text.remove_prefix(digits);
    }
  }
  absl::StrAppend(&out, text);
  return out;
}

// Returns a recorded trace of three steps so often, one after the other.
std::string Repeat(absl::string_view trace, int64_t times, int64_t period_us) {
  constexpr int64_t kSteps = 3, kIds = 1'000'000;
  const size_t begin = trace.find('[', trace.find("\"traceEvents\"")) + 1, end = trace.rfind(']');
  std::string out(trace.substr(0, begin));
  for (int64_t i = 0; i < times; ++i) {
    std::string events(trace.substr(begin, end - begin));
    events = AddToNumbers("\"ts\": ", i * period_us, events);
    events = AddToNumbers("ProfilerStep#", i * kSteps, events);
    for (const char* id : {"correlation", "External id", "Record function id"}) {
      events = AddToNumbers(absl::StrCat("\"", id, "\": "), i * kIds, events);
    }
    absl::StrAppend(&out, i == 0 ? "" : ",", events);
  }
  absl::StrAppend(&out, trace.substr(end));
  return out;
}

WindowedReports DescribeRepeated(const std::string& folder, int64_t period_us) {
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string path = absl::StrCat(folder, "/kineto_", rank, ".json.gz");
    const absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
    EXPECT_THAT(file, IsOk());
    traces.push_back(directory.Write(absl::StrCat(rank, ".json"),
                                     Repeat(file->bytes(), /*times=*/5, period_us)));
  }
  return DescribeBoth(traces, /*window_work=*/1000);
}

TEST(WindowsTest, SayNearlyTheSameOfARecordedPipelineManyTimesOver) {
  const WindowedReports reports = DescribeRepeated("examples/torch_pipeline4", 95'000);
  ExpectNearlyTheSame(reports);
  EXPECT_LT(PathDifference(reports), 0.02);
}

// Hosts are three steps ahead of their devices, which wait for a slow network.
TEST(WindowsTest, SayNearlyTheSameOfHostsThatAreFarAhead) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const WindowedReports reports =
      DescribeRepeated(absl::StrCat(*shared, "/traces/net/net1g_fsdp4"), 3'230'000);
  ExpectNearlyTheSame(reports);
  EXPECT_LT(PathDifference(reports), 0.02);
}

// Hosts never wait: each window's path is along its last host.
TEST(WindowsTest, SayNearlyTheSameOfHostsThatNeverWait) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ExpectNearlyTheSame(DescribeRepeated(absl::StrCat(*shared, "/traces/fsdp_nccl4"), 312'000));
}

}  // namespace
}  // namespace meridian
