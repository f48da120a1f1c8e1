#include "critical_path/job/job_analysis.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/xspace/device_work.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/blame.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<LoadedJob> Load(const JobInput& input, const JobOptions& options = {}) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedRun> run,
                   ReadXSpaceRun(FileSystem::Posix(), input, options));
  return run->Load(nullptr);
}

absl::StatusOr<LoadedJob> Load(const std::vector<std::string>& traces,
                               const JobOptions& options = {}) {
  JobInput input;
  input.traces = traces;
  return Load(input, options);
}

std::vector<std::string> FilesIn(const std::string& folder) {
  return *ExpandPaths(FileSystem::Posix(), folder, {"", {".xplane.pb", ".xplane.pb.gz"}});
}

// In step k of a made-up run, rank r computes for 100 + 10 r us; the all-reduce takes 50 us.
class SyntheticJobTest : public ::testing::Test {
 protected:
  std::vector<std::string> Write(const SyntheticRunOptions& options, const std::string& name) {
    std::vector<std::string> traces;
    for (const XSpaceProto& profile : SyntheticRun(options)) {
      traces.push_back(directory_.Write(absl::StrCat(name, traces.size(), ".xplane.pb"),
                                        profile.SerializeAsString()));
    }
    return traces;
  }

  const TemporaryDirectory directory_;
};

TEST_F(SyntheticJobTest, TheStragglerOfEachStepIsFound) {
  absl::StatusOr<LoadedJob> loaded = Load(Write({}, "rank"));
  ASSERT_THAT(loaded, IsOk());
  ASSERT_EQ(loaded->job.ranks.size(), 2);
  EXPECT_EQ(loaded->job.meetings.size(), 3);
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  const Blame blame = FindBlame(joined->graph);
  ASSERT_EQ(blame.rows.size(), 3);
  for (int step = 0; step < 3; ++step) {
    const BlameRow& row = blame.rows[static_cast<size_t>(step)];
    EXPECT_EQ(row.step, SyntheticRunId(step));
    EXPECT_EQ(row.rank, 1);
    EXPECT_EQ(row.op, "loop_add_fusion");
    EXPECT_EQ(row.time_ps, 10'000'000);
    EXPECT_EQ(row.waited_in, "all-reduce.2");
  }
  EXPECT_EQ(blame.ranks[0].waited_ps, 30'000'000);
  const PathBreakdown breakdown = BreakDown(joined->graph, *path);
  EXPECT_EQ(breakdown.Of(BoundBy::kGpuCompute), 3 * 110'000'000);
  EXPECT_EQ(breakdown.Of(BoundBy::kGpuCommunication), 3 * 50'000'000);
}

// Files that are gone are not read again.
TEST_F(SyntheticJobTest, WhatWasReadAlreadyIsTaken) {
  JobInput input;
  input.traces = Write({}, "rank");
  ASSERT_OK_AND_ASSIGN(const LoadedJob read, Load(input.traces));
  ASSERT_OK_AND_ASSIGN(ProfiledRun profiled, ReadProfiledRun(FileSystem::Posix(), input.traces));
  input.profiled = &profiled;
  for (const std::string& trace : input.traces) ASSERT_OK(FileSystem::Posix().Delete(trace));
  ASSERT_OK_AND_ASSIGN(const LoadedJob taken, Load(input));
  ASSERT_EQ(taken.job.ranks.size(), read.job.ranks.size());
  for (size_t rank = 0; rank < read.job.ranks.size(); ++rank) {
    EXPECT_EQ(taken.job.ranks[rank].graph.edges.size(), read.job.ranks[rank].graph.edges.size());
  }
  EXPECT_EQ(taken.job.meetings.size(), read.job.meetings.size());
  EXPECT_TRUE(profiled.profiles.empty());
  EXPECT_FALSE(Load(input).ok());
}

TEST_F(SyntheticJobTest, AStepIsAWindow) {
  JobOptions options;
  options.window = {"jit_step", {1, 1}};
  absl::StatusOr<LoadedJob> loaded = Load(Write({}, "rank"), options);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->job.meetings.size(), 1);
  EXPECT_EQ(loaded->job.meetings[0].step, SyntheticRunId(1));
  // From the same time on, until the all-reduce has ended.
  const PathGraph& graph = loaded->job.ranks[1].graph;
  EXPECT_EQ(graph.window_start_ps, loaded->job.ranks[0].graph.window_start_ps);
  EXPECT_EQ(graph.base_ns + graph.window_end_ps / 1000, TrueAllReduce({}, 1, 1).end_ns);
}

TEST_F(SyntheticJobTest, StepsThatAreNotThereAreRefusedWithThoseThereAre) {
  const std::vector<std::string> traces = Write({}, "rank");
  JobOptions options;
  options.window.annotation = "epoch";
  const absl::Status status = Load(traces, options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(traces[0]), HasSubstr(absl::StrCat("jit_step#", SyntheticRunId(0)))));
  options.window = {"jit_step", {3, 3}};
  EXPECT_THAT(Load(traces, options).status(), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(SyntheticJobTest, SomeRanksAreNotEnoughButOneIs) {
  SyntheticRunOptions run;
  run.ranks = 3;
  const std::vector<std::string> traces = Write(run, "rank");
  const absl::Status status = Load({traces[0], traces[2]}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("work of rank 1 of 3"), HasSubstr("--rank")));
  JobOptions options;
  options.rank = 2;
  EXPECT_THAT(Load({traces[0], traces[2]}, options), IsOk());
  const absl::StatusOr<LoadedJob> alone = Load({traces[1]});
  ASSERT_THAT(alone, IsOk());
  ASSERT_EQ(alone->job.ranks.size(), 1);
  EXPECT_EQ(alone->job.ranks[0].rank, 1);
  EXPECT_EQ(alone->job.meetings.size(), 0);
  EXPECT_THAT(alone->notes, Contains(HasSubstr("work of rank 0, 2 of 3")));
}

TEST_F(SyntheticJobTest, ProfilesOfTwoRunsAreRefused) {
  SyntheticRunOptions other;
  other.elements = 2048;
  EXPECT_THAT(Load({Write({}, "a")[0], Write(other, "b")[1]}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SyntheticJobTest, FilesAreReportedAsTheyAreRead) {
  std::vector<size_t> read;
  JobOptions options;
  options.progress = [&](size_t file) { read.push_back(file); };
  ASSERT_THAT(Load(Write({}, "rank"), options), IsOk());
  EXPECT_THAT(read, ElementsAre(0, 1));
}

TEST(XSpaceJobTest, ClocksThatDisagreeAreRefusedUnlessInsisted) {
  const std::vector<std::string> traces = FilesIn("examples/jax_tp_cuda4_skewed");
  const absl::Status status = Load(traces).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("run combine first"), HasSubstr("--allow_violations")));
  JobOptions options;
  options.allow_violations = true;
  absl::StatusOr<LoadedJob> loaded = Load(traces, options);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_THAT(loaded->notes, Contains(HasSubstr("the clocks disagree")));
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  EXPECT_GT(joined->against_time, 0);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, joined->graph.window_end_ps - joined->graph.window_start_ps);
}

class RealJobTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RealJobTest, ThePathIsAsLongAsTheRunAndFullyBooked) {
  absl::StatusOr<LoadedJob> loaded = Load(FilesIn(GetParam()));
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->against_time, 0);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, joined->graph.window_end_ps - joined->graph.window_start_ps);
  const PathBreakdown breakdown = BreakDown(joined->graph, *path);
  EXPECT_EQ(std::accumulate(breakdown.time_ps.begin(), breakdown.time_ps.end(), int64_t{0}),
            path->length_ps);
  EXPECT_GT(breakdown.Of(BoundBy::kGpuCommunication), 0);
  EXPECT_GT(breakdown.Of(BoundBy::kGpuCompute), 0);
}

TEST_P(RealJobTest, OneRanksPathIsAsLongAsItsRun) {
  absl::StatusOr<LoadedJob> loaded = Load(FilesIn(GetParam()));
  ASSERT_THAT(loaded, IsOk());
  const PathGraph& graph = loaded->job.ranks[1].graph;
  const int64_t length_ps = graph.window_end_ps - graph.window_start_ps;
  const absl::StatusOr<JoinedGraph> alone = ShowWaits(std::move(loaded->job), 1);
  ASSERT_THAT(alone, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(alone->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, length_ps);
  EXPECT_GT(BreakDown(alone->graph, *path).Of(BoundBy::kOtherRanks), 0);
}

INSTANTIATE_TEST_SUITE_P(Examples, RealJobTest,
                         ::testing::Values("examples/jax_cuda2", "examples/jax_cpu4",
                                           "examples/jax_tp_cuda4", "examples/jax_scan4"));

// Rank 1 sleeps at the end of steps 2 and 5, which shows in the first all-reduce of the next.
TEST(XSpaceJobTest, TheRankThatSleptHasTheLargestBlame) {
  absl::StatusOr<LoadedJob> loaded = Load(FilesIn("examples/jax_cuda2"));
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  const Blame blame = FindBlame(joined->graph);
  ASSERT_GE(blame.rows.size(), 2);
  EXPECT_EQ(blame.rows[0].step, 3);
  EXPECT_EQ(blame.rows[1].step, 6);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(blame.rows[i].rank, 1);
    EXPECT_EQ(blame.rows[i].op, "host_gap");
    EXPECT_EQ(blame.rows[i].waited_in, "all-reduce.2");
    EXPECT_GT(blame.rows[i].time_ps, 2'000'000'000);
    EXPECT_LT(blame.rows[i].time_ps, 9'000'000'000);
  }
}

// Few steps of much work make windows of fewer steps than long runs have.
TEST_F(SyntheticJobTest, AFewLongStepsAreWindows) {
  SyntheticRunOptions options;
  options.steps = 10;
  const absl::StatusOr<ProfiledRun> run =
      ReadProfiledRun(FileSystem::Posix(), Write(options, "few"));
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(FindXSpaceWindows(*run, /*window_work=*/2).size(), 5);
  EXPECT_EQ(FindXSpaceWindows(*run, /*window_work=*/1000).size(), 0);
}

// The last kernel of each step runs when that of the step after the next has begun, as copies do.
TEST_F(SyntheticJobTest, WorkThatLagsBehindItsStepIsInItsWindow) {
  SyntheticRunOptions options;
  options.steps = 40;
  absl::StatusOr<ProfiledRun> run = ReadProfiledRun(FileSystem::Posix(), Write(options, "lagging"));
  ASSERT_THAT(run, IsOk());
  std::vector<DeviceWork>& work = run->profiles[0]->devices[0].work.elements();
  ASSERT_EQ(work.size(), 80);
  const std::vector<DeviceWork> in_order = std::exchange(work, {});
  for (size_t step = 0; step < 22; ++step) {
    if (step < 20) work.push_back(in_order[2 * step]);
    if (step >= 2) work.push_back(in_order[2 * (step - 2) + 1]);
  }
  const std::vector<RunWindow> windows = FindXSpaceWindows(*run, /*window_work=*/10);
  ASSERT_GE(windows.size(), 4);
  size_t kept = 0, own_end = 0;
  for (const RunWindow& window : windows) {
    const WorkRange& range = window.work[0][0];
    for (size_t i = 0; i < work.size(); ++i) {
      if (!window.steps.Contains(*work[i].step)) continue;
      EXPECT_TRUE(i >= range.first && i < range.last) << "step " << *work[i].step;
      ++kept;
    }
    EXPECT_EQ(range.own_first, own_end) << "each work is in one window's own";
    own_end = range.own_last;
  }
  EXPECT_EQ(kept, work.size());
  EXPECT_EQ(own_end, work.size());
}

// Rank 2 sleeps 4 ms in steps 2 and 4. Nothing else keeps others waiting for long, and what waits
// for asynchronous all-gathers is no launch overhead.
TEST(XSpaceJobTest, ASleepInALoopOfAsynchronousCollectivesIsFound) {
  absl::StatusOr<LoadedJob> loaded = Load(FilesIn("examples/jax_scan4"));
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const Blame blame = FindBlame(joined->graph);
  ASSERT_GE(blame.rows.size(), 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(blame.rows[i].rank, 2);
    EXPECT_THAT(blame.rows[i].step, ::testing::AnyOf(2, 4));
    EXPECT_EQ(blame.rows[i].op, "host_gap");
    EXPECT_NEAR(static_cast<double>(blame.rows[i].time_ps), 4e9, 5e8);
  }
  EXPECT_LT(blame.rows[2].time_ps, 1'000'000'000);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  const PathBreakdown breakdown = BreakDown(joined->graph, *path);
  EXPECT_LT(breakdown.Of(BoundBy::kKernelLaunchOverhead), path->length_ps / 100);
  EXPECT_LT(breakdown.Of(BoundBy::kNotInTrace), path->length_ps / 100);
}

}  // namespace
}  // namespace meridian
