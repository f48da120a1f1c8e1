#include "trace_alignment/collectives/validation.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TraceVerdictTest : public ::testing::Test {
 protected:
  // Writes a run and returns its profiles.
  std::vector<std::string> Write(const ClusterOptions& options) {
    const SyntheticCluster cluster(options);
    EXPECT_OK(WriteCluster(FileSystem::Posix(), cluster, {}, directory_.path()));
    return ClusterTracePaths(cluster, directory_.path());
  }

  TemporaryDirectory directory_;
};

TEST_F(TraceVerdictTest, HoldsOnTrueClocks) {
  ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, CheckTraces(FileSystem::Posix(), Write({})));
  EXPECT_TRUE(verdict.holds);
  EXPECT_THAT(verdict.report, StartsWith("0 violation(s) in 8 checked of 8 collectives"));
}

TEST_F(TraceVerdictTest, DoesNotHoldWhenAClockIsAhead) {
  ClusterOptions options;
  options.host_clocks = {{}, {1'000'000'000, 0, {}}};
  ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict,
                       CheckTraces(FileSystem::Posix(), Write(options)));
  EXPECT_FALSE(verdict.holds);
  EXPECT_THAT(verdict.report, AllOf(StartsWith("8 violation(s) in 8 checked"),
                                    HasSubstr("all-reduce psum.1 of jit_step")));
}

TEST_F(TraceVerdictTest, DoesNotHoldWhenThereIsNothingToCheck) {
  const std::vector<std::string> traces = Write({});
  ASSERT_OK_AND_ASSIGN(const TraceVerdict verdict, CheckTraces(FileSystem::Posix(), {traces[1]}));
  EXPECT_FALSE(verdict.holds);
  EXPECT_THAT(verdict.report, HasSubstr("nothing to check"));
}

TEST_F(TraceVerdictTest, ADamagedFileIsAnError) {
  const std::string path = directory_.Write("node0.xplane.pb", "no profile");
  EXPECT_THAT(CheckTraces(FileSystem::Posix(), {path}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node0.xplane.pb")));
}

}  // namespace
}  // namespace meridian
