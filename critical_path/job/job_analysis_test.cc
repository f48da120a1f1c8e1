#include "critical_path/job/job_analysis.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/testing/et_workload.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/blame.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class JobAnalysisTest : public ::testing::Test {
 protected:
  JobAnalysisTest() {
    for (const XSpaceProto& profile : SyntheticRun({})) {
      input_.traces.push_back(directory_.Write(absl::StrCat("rank", input_.traces.size(), ".pb"),
                                               profile.SerializeAsString()));
    }
  }

  absl::StatusOr<TraceAnalysis> Analyze(const JobOptions& options = {}) {
    return AnalyzeJob(FileSystem::Posix(), input_, options);
  }

  const TemporaryDirectory directory_;
  JobInput input_;
};

TEST_F(JobAnalysisTest, AllRanksAreJoined) {
  const absl::StatusOr<TraceAnalysis> analysis = Analyze();
  ASSERT_THAT(analysis, IsOk());
  EXPECT_EQ(analysis->source.trace, input_.traces[0] + " and 1 more");
  EXPECT_EQ(analysis->graph.meetings.size(), 3);
  EXPECT_THAT(FindLongestPath(analysis->graph), IsOk());
}

TEST_F(JobAnalysisTest, OneRankIsChosen) {
  JobOptions options;
  options.rank = 0;
  const absl::StatusOr<TraceAnalysis> analysis = Analyze(options);
  ASSERT_THAT(analysis, IsOk());
  for (const Lane& lane : analysis->graph.lanes) EXPECT_EQ(lane.rank, 0);
  EXPECT_EQ(analysis->graph.meetings.size(), 0);
  options.rank = 7;
  EXPECT_THAT(Analyze(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 7 is not there; the traces have work of rank 0, 1")));
}

TEST_F(JobAnalysisTest, CompressedKinetoTracesAreTakenForWhatTheyAre) {
  input_.traces.clear();
  for (int rank = 0; rank < 2; ++rank) {
    KinetoTrace trace;
    trace.set_rank(rank);
    trace.Call("cudaLaunchKernelExC", 0, 5, 1);
    trace.AllReduce(10 + 20 * rank, 50 - 20 * rank, 7, 1, 2, 0);
    input_.traces.push_back(directory_.Write(absl::StrCat("trace", rank), GzipText(trace.Text())));
  }
  const absl::StatusOr<TraceAnalysis> analysis = Analyze();
  ASSERT_THAT(analysis, IsOk());
  EXPECT_EQ(analysis->graph.meetings.size(), 1);
}

TEST_F(JobAnalysisTest, ErrorsNameATrace) {
  input_.traces[1] = directory_.Write("broken.pb", "no profile");
  EXPECT_THAT(std::string(Analyze().status().message()), StartsWith(input_.traces[1]));
  input_.traces = {directory_.PathOf("missing.pb")};
  EXPECT_THAT(std::string(Analyze().status().message()), StartsWith(input_.traces[0]));
}

// Whatever the bytes, there is an error or a path that is as long as its window.
void CheckAnyBytes(const TemporaryDirectory& directory, const std::vector<std::string>& files,
                   const JobInput& input, const std::string& annotation) {
  std::mt19937_64 random(17);
  int analyzed = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::string& file = files[round % files.size()];
    const std::string whole = directory.Read(file);
    directory.Write(file, Damage(whole, random));
    JobOptions options;
    options.allow_violations = true;
    if (round % 3 == 0) options.window = {annotation, {0, 1}};
    const absl::StatusOr<TraceAnalysis> analysis = AnalyzeJob(FileSystem::Posix(), input, options);
    directory.Write(file, whole);
    if (!analysis.ok()) continue;
    const PathGraph& graph = analysis->graph;
    const absl::StatusOr<CriticalPath> path = FindLongestPath(graph);
    if (!path.ok()) continue;
    ++analyzed;
    EXPECT_EQ(path->length_ps, graph.window_end_ps - graph.window_start_ps);
    int64_t sum_ps = 0;
    for (const int64_t time_ps : BreakDown(graph, *path).time_ps) sum_ps += time_ps;
    EXPECT_EQ(sum_ps, path->length_ps);
    int64_t blame_ps = 0;
    for (const BlameRow& row : FindBlame(graph).rows) blame_ps += row.time_ps;
    EXPECT_LE(blame_ps, path->length_ps);
  }
  EXPECT_GT(analyzed, 5);
}

TEST_F(JobAnalysisTest, AnyXSpacesAreSafeToRead) {
  CheckAnyBytes(directory_, {"rank0.pb", "rank1.pb"}, input_, "jit_step");
}

TEST_F(JobAnalysisTest, AnyKinetoTracesAreSafeToRead) {
  input_.traces.clear();
  for (int rank = 0; rank < 2; ++rank) {
    KinetoTrace trace;
    trace.set_rank(rank);
    trace.Annotation("ProfilerStep#1", 0, 100);
    trace.Op("op", 5, 30);
    trace.Call("cudaLaunchKernel", 10, 5, 1);
    trace.Call("cudaLaunchKernelExC", 20, 5, 2);
    trace.Kernel("mm", 20, 10 + 5 * rank, 7, 1);
    trace.AllReduce(40 + 20 * rank, 50 - 20 * rank, 7, 2, 2, 0);
    input_.traces.push_back(directory_.Write(absl::StrCat("trace", rank, ".json"), trace.Text()));
  }
  CheckAnyBytes(directory_, {"trace0.json", "trace1.json"}, input_, "ProfilerStep");
}

TEST_F(JobAnalysisTest, AnyChakraTracesAreSafeToRead) {
  WriteWorkload(directory_, "w", TrainingStep());
  JobInput input;
  input.et_prefix = directory_.PathOf("w");
  CheckAnyBytes(directory_, {"w.0.et", "w.1.et"}, input, "step");
}

}  // namespace
}  // namespace meridian
