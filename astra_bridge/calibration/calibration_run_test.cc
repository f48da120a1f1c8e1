#include "astra_bridge/calibration/calibration_run.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
  const std::vector<ProfileFolder> folders =
      SplitByFolder({"a/0.pb", "b/0.pb", "a/1.pb", "x.pb", "/c/0.pb"});
  ASSERT_THAT(folders, SizeIs(4));
  EXPECT_EQ(folders[0].folder, "a");
  EXPECT_THAT(folders[0].traces, ElementsAre("a/0.pb", "a/1.pb"));
  EXPECT_EQ(folders[2].folder, ".");
  EXPECT_EQ(folders[3].folder, "/c");
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
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("sweep"), HasSubstr("1 of 1"), HasSubstr("combine"),
                    HasSubstr("rank 0 ended 0.500 us before rank 1 started")));
  CalibrationRunOptions options;
  options.allow_violations = true;
  ASSERT_OK_AND_ASSIGN(const CalibrationRun run, MakeCalibrationRun("sweep", matched, options));
  EXPECT_TRUE(run.across_nodes);
  EXPECT_EQ(run.violations, 1);
}

}  // namespace
}  // namespace meridian
