#include "astra_bridge/calibration/step_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

TEST(StepCheckTest, SummaryCountsStepsThatTookTime) {
  SimulationCheckReport report;
  report.add_steps()->set_measured_ns(100);
  report.mutable_steps(0)->set_simulated_ns(120);
  report.add_steps();
  SummariseSteps(&report);
  EXPECT_EQ(report.step_summary().n(), 1);
  EXPECT_NEAR(report.step_summary().mape(), 0.2, 1e-12);
}

TEST(StepCheckTest, ARealRunIsScheduledAgain) {
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    traces.push_back(absl::StrCat("examples/jax_tp_cuda4/rank", rank, ".xplane.pb.gz"));
  }
  ASSERT_OK_AND_ASSIGN(const ProfiledRun run, ReadProfiledRun(FileSystem::Posix(), traces));
  SimulationCheckReport report;
  const Fabric fabric = AssumedFabric({4});
  const Corrections corrections;
  const PredictionIntervals none;
  ASSERT_OK(CheckStep(run, "jax_tp_cuda4", std::nullopt, {fabric, corrections, none},
                      /*allow_violations=*/false, &report));
  EXPECT_FALSE(report.steps(0).has_simulated_low_ns());
  // Repeats take three times their median in the mean, and predictions may be off by half.
  CalibrationReport calibration;
  PredictionError* error = calibration.add_prediction_errors();
  error->set_factor(1.5);
  error->set_factor_per_doubling(1);
  error->set_mean_over_median(3);
  calibration.set_factor_below_sizes(1);
  calibration.set_factor_above_sizes(1);
  calibration.set_factor_of_other_kinds(1);
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals intervals,
                       PredictionIntervals::FromReport(calibration));
  ASSERT_OK(CheckStep(run, "jax_tp_cuda4", std::nullopt, {fabric, corrections, intervals},
                      /*allow_violations=*/false, &report));
  EXPECT_GT(report.steps(1).simulated_ns(), report.steps(0).simulated_ns());
  EXPECT_LT(report.steps(1).simulated_low_ns(), report.steps(1).simulated_ns());
  EXPECT_GT(report.steps(1).simulated_high_ns(), report.steps(1).simulated_ns());
  const CheckedStep& step = report.steps(0);
  EXPECT_FALSE(step.has_step());
  EXPECT_GT(step.measured_ns(), 1e6);
  // Communication that costs next to nothing makes it shorter; with its own times it is as long as
  // it was.
  EXPECT_LT(step.simulated_ns(), step.replayed_ns());
  EXPECT_NEAR(step.replayed_ns() / step.measured_ns(), 1, 0.1);
}

}  // namespace
}  // namespace meridian
