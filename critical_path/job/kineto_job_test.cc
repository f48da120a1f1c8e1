#include "critical_path/job/job_analysis.h"

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/job/blame.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<LoadedJob> Load(const std::vector<std::string>& traces,
                               const JobOptions& options = {}) {
  JobInput input;
  input.traces = traces;
  absl::StatusOr<TraceFiles> files = TraceFiles::Create(FileSystem::Posix(), input.traces);
  if (!files.ok()) return files.status();
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedRun> run,
                   ReadKinetoRun(FileSystem::Posix(), *files, input, options));
  return run->Load(nullptr);
}

// Two steps, 1 ms apart. In each a kernel runs from 20 us on, then an all-reduce, for which the
// host waits; rank 1's kernel takes 100 us instead of 60, and all-reduces end 50 us after the last
// start.
KinetoTrace RankTrace(int64_t rank, int ranks = 2) {
  KinetoTrace trace;
  trace.set_rank(rank);
  for (int64_t step = 0; step < 2; ++step) {
    const double at = 1000.0 * static_cast<double>(step);
    const double kernel_us = rank == 1 ? 100 : 60;
    const int64_t id = 10 * step;
    trace.Annotation(absl::StrCat("ProfilerStep#", 5 + step), at, 300);
    trace.Op("aten::mm", at + 5, 20);
    trace.Call("cudaLaunchKernel", at + 10, 5, id + 1);
    trace.Op("c10d::allreduce_", at + 30, 20);
    trace.Call("cudaLaunchKernelExC", at + 35, 5, id + 2);
    trace.Kernel("gemm", at + 20, kernel_us, 7, id + 1);
    trace.AllReduce(at + 20 + kernel_us, 150 - kernel_us, 7, id + 2, ranks, step);
    trace.Call("cudaStreamSynchronize", at + 60, 115, id + 3);
    trace.Sync("Stream Sync", at + 60, 115, 7, id + 3);
  }
  return trace;
}

class KinetoJobTest : public ::testing::Test {
 protected:
  std::string Write(int64_t rank, int ranks = 2) {
    return directory_.Write(absl::StrCat("rank", rank, ".json"), RankTrace(rank, ranks).Text());
  }

  const TemporaryDirectory directory_;
};

TEST_F(KinetoJobTest, RanksMeetInTheirCollectives) {
  // The files' order does not matter.
  absl::StatusOr<LoadedJob> loaded = Load({Write(1), Write(0)});
  ASSERT_THAT(loaded, IsOk());
  ASSERT_EQ(loaded->job.ranks.size(), 2);
  EXPECT_EQ(loaded->job.ranks[0].rank, 0);
  EXPECT_EQ(loaded->job.ranks[1].graph.lanes[0].rank, 1);
  ASSERT_EQ(loaded->job.meetings.size(), 2);
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, joined->graph.window_end_ps - joined->graph.window_start_ps);
  const Blame blame = FindBlame(joined->graph);
  ASSERT_EQ(blame.rows.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(blame.rows[i].step, 5 + static_cast<int64_t>(i));
    EXPECT_EQ(blame.rows[i].rank, 1);
    EXPECT_EQ(blame.rows[i].op, "gemm");
    EXPECT_EQ(blame.rows[i].time_ps, 40'000'000);
  }
}

// At the annotation, 5 us before the first operator, and until the all-reduce ends.
TEST_F(KinetoJobTest, TheFirstStepBeginsWhereEachRankMarksIt) {
  absl::StatusOr<LoadedJob> loaded = Load({Write(0, 3), Write(1, 3), Write(2, 3)});
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const StepTimes times = FindStepTimes(joined->graph);
  ASSERT_EQ(times.steps.size(), 2);
  EXPECT_EQ(times.steps[0].length_ps(), 170'000'000);
}

TEST_F(KinetoJobTest, TheWindowIsThatOfEachRanksAnnotation) {
  JobOptions options;
  options.window = {"ProfilerStep", {1, 1}};
  const absl::StatusOr<LoadedJob> loaded = Load({Write(0), Write(1)}, options);
  ASSERT_THAT(loaded, IsOk());
  ASSERT_EQ(loaded->job.meetings.size(), 1);
  EXPECT_EQ(loaded->job.meetings[0].step, 6);
  options.window.annotation = "epoch";
  const absl::Status status = Load({Write(0), Write(1)}, options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr("rank0.json"), HasSubstr("ProfilerStep#5"))));
}

// What a step of a rank begins with counts for that rank.
TEST_F(KinetoJobTest, EachRankMarksItsOwnFirstStep) {
  for (const char* annotation : {"", "ProfilerStep"}) {
    JobOptions options;
    options.window.annotation = annotation;
    ASSERT_OK_AND_ASSIGN(const LoadedJob loaded, Load({Write(0), Write(1)}, options));
    for (const RankGraph& rank : loaded.job.ranks) {
      ASSERT_EQ(rank.graph.marks.size(), 1);
      EXPECT_EQ(rank.graph.marks[0].rank, rank.rank);
    }
  }
}

// Ranks 0 and 1 of eight steps, which rank 1 numbers from another on; each has an all-reduce, the
// `shift`-th of rank 1 with the first of rank 0.
std::vector<RunWindow> WindowsOf(int64_t first_of_rank_1, int64_t shift,
                                 const JobOptions& options = {}) {
  const TemporaryDirectory directory;
  JobInput input;
  for (int64_t rank = 0; rank < 2; ++rank) {
    KinetoTrace trace;
    trace.set_rank(rank);
    for (int64_t step = 0; step < 8; ++step) {
      const double at = 1000.0 * static_cast<double>(step - (rank == 1 ? shift : 0));
      trace.Annotation(absl::StrCat("ProfilerStep#", (rank == 1 ? first_of_rank_1 : 5) + step), at,
                       900);
      trace.Call("cudaLaunchKernelExC", at + 35, 5, step + 1);
      trace.AllReduce(at + 50, 100, 7, step + 1, 2, step - (rank == 1 ? shift : 0));
    }
    input.traces.push_back(directory.Write(absl::StrCat("rank", rank, ".json"), trace.Text()));
  }
  const absl::StatusOr<TraceFiles> files = TraceFiles::Create(FileSystem::Posix(), input.traces);
  const auto run = ReadKinetoRun(FileSystem::Posix(), *files, input, options);
  EXPECT_THAT(run, IsOk());
  return (*run)->FindWindows(/*window_work=*/2);
}

TEST(KinetoWindowsTest, StepsThatRanksNumberAlikeAreWindows) {
  const std::vector<RunWindow> windows = WindowsOf(5, 0);
  ASSERT_EQ(windows.size(), 4);
  EXPECT_EQ(windows[1].steps.first, 7);
  EXPECT_EQ(windows[1].steps.last, 8);
  EXPECT_EQ(windows[1].with_beside.first, 6);
  EXPECT_EQ(windows[1].with_beside.last, 9);
  // Mark, call and kernel of four steps of two ranks.
  EXPECT_EQ(windows[1].size, 24);
}

TEST(KinetoWindowsTest, ThereAreNoneOfStepsThatRanksNumberDifferently) {
  EXPECT_TRUE(WindowsOf(6, 0).empty());
  EXPECT_TRUE(WindowsOf(5, 1).empty()) << "a step is another's next";
}

TEST(KinetoWindowsTest, ThereAreNoneOfChosenSteps) {
  JobOptions options;
  options.window.annotation = "ProfilerStep";
  EXPECT_TRUE(WindowsOf(5, 0, options).empty());
}

// Rank 1 begins its step 100 us late.
TEST_F(KinetoJobTest, WhoeverBeginsAStepLateIsToBlame) {
  std::vector<std::string> traces;
  for (int rank = 0; rank < 2; ++rank) {
    KinetoTrace trace;
    trace.set_rank(rank);
    const double at = 100 * rank;
    trace.Annotation("ProfilerStep#5", at, 300 - at);
    trace.Call("cudaLaunchKernelExC", at, 5, 1);
    trace.AllReduce(at + 10, 200 - at, 7, 1, 2, 0);
    trace.Call("cudaStreamSynchronize", at + 20, 200 - at, 2);
    trace.Sync("Stream Sync", at + 20, 200 - at, 7, 2);
    traces.push_back(directory_.Write(absl::StrCat("late", rank, ".json"), trace.Text()));
  }
  JobOptions options;
  options.window.annotation = "ProfilerStep";
  absl::StatusOr<LoadedJob> loaded = Load(traces, options);
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  const Blame blame = FindBlame(joined->graph);
  ASSERT_EQ(blame.rows.size(), 1);
  EXPECT_EQ(blame.rows[0].rank, 1);
  EXPECT_EQ(blame.rows[0].op, "before_step");
  EXPECT_EQ(blame.rows[0].time_ps, 100'000'000);
}

TEST_F(KinetoJobTest, TwoTracesOfOneRankAreRefused) {
  const std::string again = directory_.Write("again.json", RankTrace(1).Text());
  EXPECT_THAT(Load({Write(0), Write(1), again}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(KinetoJobTest, SomeRanksAreNotEnough) {
  EXPECT_THAT(Load({Write(0, 3), Write(1, 3)}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 2 of 3")));
}

TEST_F(KinetoJobTest, ClocksThatDisagreeAreRefusedUnlessInsisted) {
  KinetoTrace late;
  late.set_rank(1);
  late.Call("cudaLaunchKernelExC", 400, 5, 1);
  late.AllReduce(410, 50, 7, 1, 2, 0);
  const std::vector<std::string> traces = {Write(0), directory_.Write("late.json", late.Text())};
  EXPECT_THAT(Load(traces).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--allow_violations")));
  JobOptions options;
  options.allow_violations = true;
  const absl::StatusOr<LoadedJob> loaded = Load(traces, options);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_THAT(loaded->notes, ::testing::Contains(HasSubstr("the clocks disagree")));
}

TEST_F(KinetoJobTest, BrokenTracesAreNamed) {
  const std::string broken = directory_.Write("broken.json", "{\"traceEvents\": [");
  const absl::Status status = Load({Write(0), broken}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("broken.json")));
}

TEST(RealKinetoJobTest, FourRanksOfTrainingHaveOnePath) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    traces.push_back(absl::StrCat(*shared, "/traces/torch_nccl4/kineto_", rank, ".json.gz"));
  }
  absl::StatusOr<LoadedJob> loaded = Load(traces);
  ASSERT_THAT(loaded, IsOk());
  ASSERT_EQ(loaded->job.ranks.size(), 4);
  EXPECT_GT(loaded->job.meetings.size(), 0);
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->against_time, 0);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, joined->graph.window_end_ps - joined->graph.window_start_ps);
  const PathBreakdown breakdown = BreakDown(joined->graph, *path);
  EXPECT_EQ(std::accumulate(breakdown.time_ps.begin(), breakdown.time_ps.end(), int64_t{0}),
            path->length_ps);
  EXPECT_EQ(FindBlame(joined->graph).ranks.size(), 4);
}

// Rank 1 of a pipeline sleeps 5 ms in step 3. That stages wait for each other is nobody's fault.
TEST(RealKinetoJobTest, ASleepInAPipelineOfBatchedMessagesIsFound) {
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    traces.push_back(absl::StrCat("examples/torch_pipeline4/kineto_", rank, ".json.gz"));
  }
  absl::StatusOr<LoadedJob> loaded = Load(traces);
  ASSERT_THAT(loaded, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(loaded->job));
  ASSERT_THAT(joined, IsOk());
  std::map<int64_t, int64_t> in_step_3;
  for (const BlameRow& row : FindBlame(joined->graph).rows) {
    if (row.step == 3) in_step_3[row.rank] += row.time_ps;
  }
  EXPECT_GT(in_step_3[1], 3'000'000'000);
  for (const int64_t other : {0, 2, 3}) EXPECT_LT(in_step_3[other], in_step_3[1]) << other;
}

}  // namespace
}  // namespace meridian
