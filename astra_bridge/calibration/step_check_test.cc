#include "astra_bridge/calibration/step_check.h"

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/engine_model.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;

TEST(StepCheckTest, SummaryCountsStepsThatTookTime) {
  CheckedStep step;
  step.set_measured_ns(100);
  step.set_simulated_ns(120);
  SimulationCheckReport report;
  AddSteps({step, CheckedStep()}, &report);
  EXPECT_EQ(report.steps_size(), 2);
  EXPECT_EQ(report.step_summary().n(), 1);
  EXPECT_NEAR(report.step_summary().mape(), 0.2, 1e-12);
}

// Two ranks that reduce for 100 us. Beside it, each sends to itself for 60 and adds for 10: what it
// sends is communication, though it is exported as computation.
TEST(StepCheckTest, CommunicationWithNobodyElseIsNoComputation) {
  const xla::ShapeProto floats = ArrayShape(xla::F32, {64});
  HloModuleBuilder program = PartitionedProgram(2);
  const auto* x = program.Add("x", "parameter", floats);
  AddAllReduce("all-reduce.1", floats, {x}, {{0, 1}}, &program);
  AddPermute("permute.1", floats, {x}, {{0, 0}, {1, 1}}, &program);
  program.Add("add.1", "add", floats, {x, x});
  const TemporaryDirectory directory;
  CalibrationRun run;
  run.folder = "made_up";
  for (int64_t rank : {0, 1}) {
    const XSpaceProto profile = GpuProfile(
        rank, program,
        {{7,
          10,
          {{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "all-reduce.1", 14,
            100000, 200000, ""},
           {"ncclDevKernel_SendRecv(ncclDevKernelArgs)", "permute.1", 15, 120000, 180000, ""},
           {"loop_add", "add.1", 16, 180000, 190000, ""}}}});
    run.traces.push_back(directory.Write(absl::StrCat("traces/rank", rank, ".xplane.pb"),
                                         profile.SerializeAsString()));
  }
  StepCheckOptions options;
  options.work_folder = directory.path();
  ASSERT_OK_AND_ASSIGN(const StepCheck check, CheckStep(FileSystem::Posix(), run, std::nullopt,
                                                        AssumedFabric(2), Corrections(), options));
  EXPECT_EQ(check.step.measured_ns(), 100000);
  EXPECT_DOUBLE_EQ(check.step.compute_share(), 0.1);
}

TEST(StepCheckTest, ARealRunIsScheduledAgain) {
  const TemporaryDirectory work;
  CalibrationRun run;
  run.folder = "jax_tp_cuda4";
  for (int rank = 0; rank < 4; ++rank) {
    run.traces.push_back(absl::StrCat("examples/jax_tp_cuda4/rank", rank, ".xplane.pb.gz"));
  }
  StepCheckOptions options;
  options.work_folder = work.path();
  ASSERT_OK_AND_ASSIGN(const StepCheck check, CheckStep(FileSystem::Posix(), run, std::nullopt,
                                                        AssumedFabric(4), Corrections(), options));
  const CheckedStep& step = check.step;
  EXPECT_FALSE(step.has_step());
  EXPECT_GT(step.measured_ns(), 1e6);
  // Communication that costs next to nothing makes it shorter; with its own times it is as long as
  // it was.
  EXPECT_LT(step.simulated_ns(), step.replayed_ns());
  EXPECT_NEAR(step.replayed_ns() / step.measured_ns(), 1, 0.1);
  EXPECT_GT(step.compute_share(), 0);
  EXPECT_LT(step.compute_share(), 1);
  TransferCell cell;
  cell.kind = CollectiveKind::kAllReduce;
  cell.bytes = 1 << 20;
  cell.ranks = 4;
  cell.participants = {0, 1};
  const std::optional<double> share = check.beside.ShareOf(cell);
  ASSERT_TRUE(share.has_value());
  EXPECT_LT(*share, 1);
  EXPECT_THAT(work.List(), IsEmpty());
}

}  // namespace
}  // namespace meridian
