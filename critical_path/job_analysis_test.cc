#include "critical_path/job_analysis.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/longest_path.h"
#include "critical_path/testing/kineto_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/util/testing/gzip_text.h"
#include "xla_profiler/util/testing/status_matchers.h"
#include "xla_profiler/util/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(IsTraceJsonTest, TellsTracesApartByTheirContents) {
  EXPECT_TRUE(IsTraceJson(" {\"traceEvents\": []}"));
  EXPECT_TRUE(IsTraceJson("[\n{\"ph\": \"X\"}]"));
  EXPECT_TRUE(IsTraceJson("{}"));
  EXPECT_FALSE(IsTraceJson(""));
  EXPECT_FALSE(IsTraceJson(SyntheticRun({})[0].SerializeAsString()));
  // A plane of 123 bytes.
  EXPECT_FALSE(IsTraceJson("\n{\x08\x01"));
}

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

}  // namespace
}  // namespace meridian
