#include "astra_bridge/calibration/simulation_check.h"

#include <utility>

#include "absl/status/status.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int64_t kBytes = 1 << 20;

TransferSample Sample(int64_t start_ns, double transfer_ns) {
  TransferSample sample;
  sample.kind = CollectiveKind::kAllGather;
  sample.bytes = kBytes;
  sample.start_ns = start_ns;
  sample.transfer_ns = transfer_ns;
  return sample;
}

CalibrationRun RunOf(std::vector<TransferSample> samples) {
  CalibrationRun run;
  run.folder = "run";
  run.transfers.ranks = 4;
  run.transfers.groups = {{0, 1, 2, 3}};
  run.transfers.samples = std::move(samples);
  return run;
}

// A ring all-gather of 1 MiB in four takes 60,133 ns on the assumed fabric: see engine_model_test.
constexpr double kSimulatedNs = 60133;

TEST(SimulationCheckTest, ErrorsAreSignedAndRelativeToWhatWasMeasured) {
  ASSERT_OK_AND_ASSIGN(
      const SimulationCheckReport report,
      CheckSimulation({RunOf({Sample(0, 50000), Sample(100000, 40000), Sample(200000, 60000)})},
                      AssumedFabric({4}), {}));
  ASSERT_THAT(report.cells(), SizeIs(1));
  EXPECT_EQ(report.cells(0).repeats(), 3);
  EXPECT_EQ(report.cells(0).measured_ns(), 50000);
  EXPECT_NEAR(report.cells(0).simulated_ns(), kSimulatedNs, 1e-6);
  EXPECT_NEAR(report.cells(0).signed_error(), kSimulatedNs / 50000 - 1, 1e-9);
  EXPECT_EQ(report.summary().n(), 1);
  EXPECT_EQ(report.collective_summary().n(), 3);
  EXPECT_THAT(report.collectives(), SizeIs(3));
  EXPECT_NEAR(report.collectives(1).signed_error(), kSimulatedNs / 40000 - 1, 1e-9);
}

TEST(SimulationCheckTest, CorrectionsAreApplied) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllGather)] = {{kBytes, 2}};
  ASSERT_OK_AND_ASSIGN(
      const SimulationCheckReport report,
      CheckSimulation({RunOf({Sample(0, 2 * kSimulatedNs)})}, AssumedFabric({4}), corrections));
  EXPECT_NEAR(report.cells(0).signed_error(), 0, 1e-9);
}

TEST(SimulationCheckTest, WhatMetOthersSaysSo) {
  std::vector<TransferSample> samples = {Sample(0, 100000), Sample(50000, 100000)};
  for (TransferSample& sample : samples) sample.overlapped = true;
  ASSERT_OK_AND_ASSIGN(const SimulationCheckReport report,
                       CheckSimulation({RunOf(samples)}, AssumedFabric({4}), {}));
  EXPECT_THAT(report.cells(0).reasons(), ElementsAre("met other collectives"));
}

// Calibrated with all-gathers of 1 to 4 KiB on four ranks.
TEST(SimulationCheckTest, IntervalsAndReasonsAreOfTheCalibration) {
  CalibrationReport calibration;
  PredictionError* error = calibration.add_prediction_errors();
  error->set_factor(1.5);
  error->set_factor_per_doubling(2);
  error->set_mean_over_median(1);
  calibration.set_factor_below_sizes(1);
  calibration.set_factor_above_sizes(1);
  calibration.set_factor_of_other_kinds(2);
  CalibratedKind* fitted = calibration.add_calibrated_kinds();
  fitted->set_kind("all-gather");
  fitted->set_least_bytes(1024);
  fitted->set_most_bytes(4096);
  fitted->set_least_ranks(4);
  fitted->set_most_ranks(4);
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals intervals,
                       PredictionIntervals::FromReport(calibration));
  CalibrationRun run = RunOf({Sample(0, 1.4 * kSimulatedNs)});
  run.notes = {"its clocks disagree"};
  run.folder = "./run";
  ASSERT_OK_AND_ASSIGN(const SimulationCheckReport report,
                       CheckSimulation({run}, AssumedFabric({4}), {}, intervals));
  EXPECT_THAT(report.cells(0).reasons(), ElementsAre("size outside the calibration"));
  EXPECT_NEAR(report.cells(0).simulated_high_ns() / report.cells(0).simulated_ns(), 1.5, 1e-9);
  EXPECT_EQ(report.cells_inside().inside(), 1);
  EXPECT_THAT(report.notes(), ElementsAre("its clocks disagree"));
  CalibratedRun* used = calibration.add_runs();
  used->set_folder("run/");
  used->set_ranks(run.transfers.ranks);
  used->set_transfers(1);
  EXPECT_THAT(NotesOnCalibratedRuns(calibration, {run}), SizeIs(1));
  used->set_transfers(2);
  EXPECT_THAT(NotesOnCalibratedRuns(calibration, {run}), SizeIs(0));
}

TEST(SimulationCheckTest, ACellMayHaveNoReasons) {
  ASSERT_OK_AND_ASSIGN(const SimulationCheckReport report,
                       CheckSimulation({RunOf({Sample(0, 50000)})}, AssumedFabric({4}), {}));
  EXPECT_THAT(report.cells(0).reasons(), SizeIs(0));
}

TEST(SimulationCheckTest, NetworksThatAreTooSmallAreNamedWithWhatIsNeeded) {
  Fabric fabric = AssumedFabric({2, 2});
  fabric.network.source = "small.yml";
  CalibrationRun run = RunOf({Sample(0, 50000)});
  run.transfers.ranks = 7;
  run.transfers.groups = {{0, 1, 4, 5}};
  const absl::Status status = CheckSimulation({run}, fabric, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(std::string(status.message()),
            "small.yml has 4 NPUs, but rank 5 of run takes part; give --network a network with at "
            "least 7 NPUs");
}

TEST(SimulationCheckTest, NothingToCheckIsRefused) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(CheckSimulation({RunOf({})}, AssumedFabric({4}), {}).status()));
}

}  // namespace
}  // namespace meridian
