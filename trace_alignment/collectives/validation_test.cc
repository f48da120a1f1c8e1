#include "trace_alignment/collectives/validation.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The synthetic run with rank 0's session moved by so much.
absl::StatusOr<ValidationReport> ValidateMoved(int64_t move_ns) {
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  std::vector<XSpaceProto> spaces = SyntheticRun({});
  for (size_t rank = 0; rank < spaces.size(); ++rank) {
    if (rank == 0) {
      XPlaneProto* plane = FindMutablePlaneWithName(&spaces[0], kTaskEnvPlaneName);
      plane->mutable_stats(0)->set_uint64_value(plane->stats(0).uint64_value() + move_ns);
    }
    traces.push_back(directory.Write("rank" + std::to_string(rank) + ".xplane.pb",
                                     spaces[rank].SerializeAsString()));
  }
  absl::StatusOr<CollectiveRun> run = ReadCollectiveRun(FileSystem::Posix(), traces);
  if (!run.ok()) return run.status();
  return Validate(*run);
}

TEST(ValidationTest, TrueClocksShowNoViolation) {
  ASSERT_OK_AND_ASSIGN(const ValidationReport report, ValidateMoved(0));
  EXPECT_EQ(report.instances(), 3);
  EXPECT_EQ(report.checked(), 3);
  EXPECT_EQ(report.violations(), 0);
  EXPECT_EQ(report.unmatched(), 0);
  EXPECT_EQ(report.run_method(), "run_id");
  EXPECT_THAT(FormatValidation(report), StartsWith("0 violation(s) in 3 checked of 3"));
}

TEST(ValidationTest, AClockThatIsAheadShowsWhoAndByHowMuch) {
  // Rank 1's all-reduce ends 50 us after rank 1 started it; rank 0 started 10 us before rank 1.
  // With its clock 100 us ahead rank 0 seems to start 40 us after rank 1 has ended.
  ASSERT_OK_AND_ASSIGN(const ValidationReport report, ValidateMoved(100000));
  EXPECT_EQ(report.violations(), 3);
  ASSERT_EQ(report.details_size(), 3);
  EXPECT_EQ(report.details(0).ended_rank(), 1);
  EXPECT_EQ(report.details(0).started_rank(), 0);
  EXPECT_EQ(report.details(0).gap_ns(), 40000);
  EXPECT_EQ(report.details(0).kind(), "all-reduce");
  EXPECT_THAT(report.details(0).group(), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(FormatValidation(report),
              HasSubstr("rank 1  rank 0  40.000  all-reduce all-reduce.2 of jit_step"));
  EXPECT_THAT(ValidationCsv(report),
              HasSubstr("all-reduce,\"jit_step\",\"all-reduce.2\",\"0 1\",1,0,40000.000,2,2\n"));
}

}  // namespace
}  // namespace meridian
