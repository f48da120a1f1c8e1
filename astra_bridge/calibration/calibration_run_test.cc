#include "astra_bridge/calibration/calibration_run.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CollectiveRun Match(RunBuilder builder) {
  for (ProfileCollectives& profile : builder.profiles()) {
    for (CollectiveOp& op : profile.ops) op.operand_bytes = 4096;
    for (LocalDevice& device : profile.devices) device.name = "/device:GPU:0";
  }
  CollectiveRun run;
  ResolvedRun resolved = builder.Resolve();
  run.table = *BuildCollectiveTable(resolved.profiles, resolved.ranks, resolved.runs);
  run.profiles = std::move(resolved.profiles);
  run.ranks = std::move(resolved.ranks);
  run.runs = std::move(resolved.runs);
  return run;
}

TEST(CalibrationRunTest, FilesOfAFolderAreARun) {
  const std::string cpu0 = "examples/jax_cpu4/rank0.xplane.pb.gz";
  const std::string cpu1 = "examples/jax_cpu4/rank1.xplane.pb.gz";
  const std::string gpu0 = "examples/jax_cuda2/rank0.xplane.pb";
  const std::string gpu1 = "examples/jax_cuda2/rank1.xplane.pb";
  std::vector<size_t> files;
  CalibrationRunOptions options;
  options.progress = [&](size_t file) { files.push_back(file); };
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadCalibrationRuns(FileSystem::Posix(), {gpu0, cpu0, gpu1, cpu1}, options));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].folder, "examples/jax_cuda2");
  EXPECT_THAT(runs[0].traces, ElementsAre(gpu0, gpu1));
  EXPECT_THAT(runs[0].device_kinds, ElementsAre("GPU"));
  EXPECT_THAT(runs[0].transfers.samples, SizeIs(56));
  EXPECT_THAT(runs[0].steps, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(runs[1].folder, "examples/jax_cpu4");
  EXPECT_THAT(runs[1].device_kinds, ElementsAre("CPU"));
  EXPECT_THAT(files, ElementsAre(0, 1, 2, 3));
}

// By profile.
CollectiveRun RunWithSteps(const std::vector<std::vector<int64_t>>& steps) {
  CollectiveRun run;
  for (const std::vector<int64_t>& of_profile : steps) {
    ProfileCollectives& profile = run.profiles.emplace_back();
    profile.events.emplace_back();
    for (int64_t step : of_profile) profile.events.emplace_back().step = step;
  }
  return run;
}

TEST(CalibrationRunTest, StepsAtTheEndsMayBeCutOff) {
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5, 6}, {6, 5, 4, 3}})), ElementsAre(4, 5));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5}})), ElementsAre(4));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4}, {3, 4}})), ElementsAre(3, 4));
}

TEST(CalibrationRunTest, StepsThatAProfileLacksAreNotWhole) {
  // Rank 1 began at the end of 5, rank 0 ended at the start of 8.
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5, 6, 7, 8}, {5, 6, 7, 8, 9}})), ElementsAre(6, 7));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 4, 5}, {5, 6, 7}})), ElementsAre(5));
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 5}, {4, 6}})), IsEmpty());
  // What nothing is left of stays so.
  EXPECT_THAT(WholeSteps(RunWithSteps({{3, 5}, {4, 6}, {4, 5, 6}})), IsEmpty());
}

TEST(CalibrationRunTest, ProfilesWithoutStepsDoNotCount) {
  EXPECT_THAT(WholeSteps(RunWithSteps({{}, {3, 4, 5}, {}})), ElementsAre(4));
  EXPECT_THAT(WholeSteps(RunWithSteps({{}, {}})), IsEmpty());
}

TEST(CalibrationRunTest, TellsFabricsWithinAndAcrossNodes) {
  RunBuilder builder(/*nodes=*/2, /*devices_per_node=*/2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}, {2, 3}});
  for (int64_t rank = 0; rank < 4; ++rank) builder.Add({op, 7, rank, 1000, 2000});
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run,
                       MakeCalibrationRun("f", Match(std::move(builder))));
  EXPECT_TRUE(run.within_nodes);
  EXPECT_FALSE(run.across_nodes);
  EXPECT_THAT(run.device_kinds, ElementsAre("GPU"));
  EXPECT_THAT(run.transfers.samples, SizeIs(2));
}

TEST(CalibrationRunTest, ClocksThatDisagreeAreRefusedUnlessTheUserInsists) {
  RunBuilder builder(2);
  const uint32_t op = builder.AddOp(CollectiveKind::kAllReduce, {{0, 1}});
  builder.Add({op, 7, 0, 1'000'000, 2'000'000});
  builder.Add({op, 7, 1, 2'500'000, 3'500'000});
  const CollectiveRun matched = Match(std::move(builder));
  const absl::Status refused = MakeCalibrationRun("sweep", matched).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("node0 and node1"), HasSubstr("1 of 1"), HasSubstr("combine"),
                    HasSubstr("rank 0 ended 0.500 us before rank 1 started")));
  CalibrationRunOptions options;
  options.allow_violations = true;
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run, MakeCalibrationRun("sweep", matched, options));
  EXPECT_TRUE(run.across_nodes);
  EXPECT_THAT(run.notes, ElementsAre(AllOf(HasSubstr("sweep: 1 collectives end before"))));
}

}  // namespace
}  // namespace meridian
