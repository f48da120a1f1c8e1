#include "tools/pipeline/measured_runs.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> SkewedTraces() {
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    traces.push_back(absl::StrCat("examples/jax_tp_cuda4_skewed/rank", rank, ".xplane.pb.gz"));
  }
  return traces;
}

TEST(MeasuredRunsTest, ProfilesOfAFolderAreARun) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<CalibrationRun> runs,
      ReadMeasuredRuns(FileSystem::Posix(),
                       {"examples/jax_cuda2/rank0.xplane.pb", "examples/jax_cuda2/rank1.xplane.pb"},
                       InputFileOptions(), /*allow_violations=*/false));
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].folder, "examples/jax_cuda2");
  EXPECT_THAT(runs[0].transfers.samples, SizeIs(56));
  EXPECT_THAT(runs[0].notes, IsEmpty());
}

TEST(MeasuredRunsTest, ClocksThatDisagreeAreUsedOnlyWhenAskedFor) {
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadMeasuredRuns(FileSystem::Posix(), SkewedTraces(),
                                                          InputFileOptions(),
                                                          /*allow_violations=*/false)
                                             .status()));
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadMeasuredRuns(FileSystem::Posix(), SkewedTraces(), InputFileOptions(),
                                        /*allow_violations=*/true));
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_THAT(runs[0].notes, Contains(HasSubstr("its clocks disagree")));
}

}  // namespace
}  // namespace meridian
