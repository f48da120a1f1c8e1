#include "astra_bridge/calibration/calibration.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/calibrated_model.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/report_text.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

CalibrationRun SyntheticRun(int32_t ranks, const SyntheticOptions& options = {}) {
  CalibrationRun run;
  run.folder = absl::StrCat("ranks", ranks);
  run.transfers = MakeSyntheticTransfers(RingOf(ranks, 30000, 4), ranks, options);
  run.device_kinds = {"GPU"};
  run.across_nodes = true;
  return run;
}

void ExpectRefused(const std::vector<CalibrationRun>& runs, const CalibrationOptions& options,
                   const std::string& reason) {
  const absl::Status status = Calibrate(runs, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
}

TEST(CalibrationTest, RecoversTheTruthAndPredictsWhatItHasNotSeen) {
  ASSERT_OK_AND_ASSIGN(const Calibration calibration,
                       Calibrate({SyntheticRun(2), SyntheticRun(4)}));
  const CalibrationReport& report = calibration.report;
  ASSERT_THAT(report.parameters(), SizeIs(3));
  EXPECT_EQ(report.parameters(0).name(), "latency_ns[0]");
  EXPECT_NEAR(report.parameters(0).value(), 30000, 900);
  EXPECT_LE(report.parameters(0).low(), report.parameters(0).value());
  EXPECT_GE(report.parameters(0).high(), report.parameters(0).value());
  EXPECT_EQ(report.parameters(1).name(), "bandwidth_gib_per_s[0]");
  EXPECT_NEAR(report.parameters(1).value(), 4, 0.12);
  EXPECT_FALSE(report.parameters(2).identifiable());
  EXPECT_FALSE(report.parameters(2).has_low());
  // Four kinds, seven sizes, two groups; five sizes lie between others.
  EXPECT_EQ(report.fit().n(), 56);
  EXPECT_EQ(report.holdout().n(), 40);
  EXPECT_LT(report.holdout().mape(), 0.06);
  EXPECT_GT(report.uncalibrated().mape(), 0.5);
  EXPECT_GT(report.noise_floor(), 0.01);
  EXPECT_LT(report.noise_floor(), 0.1);
  EXPECT_EQ(calibration.fabric.network.npus(), 4);
  EXPECT_THAT(FormatCalibration(report),
              AllOf(HasSubstr("latency_ns[0]"), HasSubstr("not identifiable, kept"),
                    HasSubstr("held out (size)"), HasSubstr("noise floor")));
}

TEST(CalibrationTest, FitsGivenSizesOnlyAndPredictsTheOthers) {
  CalibrationOptions options;
  options.sizes = {1 << 10, 1 << 14, 1 << 18, 1 << 22};
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({SyntheticRun(4)}, options));
  EXPECT_EQ(calibration.report.fit().n(), 16);
  EXPECT_EQ(calibration.report.holdout().n(), 12);
  EXPECT_EQ(calibration.report.holdout_rule(), "sizes not fitted");
  for (const CalibratedCell& cell : calibration.report.cells()) {
    EXPECT_NE(cell.fitted(), cell.has_held_out_ns());
  }
}

// As training runs have them: many sizes, each of them once or twice.
TEST(CalibrationTest, HundredsOfSizesAreTakenTogether) {
  SyntheticOptions many;
  many.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
  many.repeats = 3;
  many.sizes.clear();
  for (int i = 0; i < 300; ++i) {
    many.sizes.push_back(1024 + std::llround(1024 * std::exp2(14.0 * i / 299)));
  }
  CalibrationRun run = SyntheticRun(4, many);
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}));
  const CalibrationReport& report = calibration.report;
  EXPECT_EQ(report.fit().n(), 2 * 300);
  EXPECT_EQ(report.holdout().n(), 2 * 298);
  // A median of three with noise of 10 % is off by 5 % in the mean.
  EXPECT_LT(report.fit().mape(), 0.07);
  EXPECT_LT(report.holdout().mape(), 0.07);
  EXPECT_NEAR(report.parameters(0).value(), 30000, 900);
  EXPECT_NEAR(report.parameters(1).value(), 4, 0.12);
  EXPECT_THAT(report.notes(), Contains(HasSubstr("there are 300 sizes: they were held out in 24 "
                                                 "ranges")));
  EXPECT_THAT(report.notes(),
              Contains(HasSubstr("all-gather has 300 sizes: those within a factor of 1.25 were")));
}

TEST(CalibrationTest, SaysWhenOtherNumbersOfRanksAreAGuess) {
  ASSERT_OK_AND_ASSIGN(const Calibration one, Calibrate({SyntheticRun(4)}));
  EXPECT_THAT(one.report.notes(), Contains(HasSubstr("all groups have 4 ranks")));
  EXPECT_THAT(one.report.notes(), Contains(HasSubstr("latency_ns[0] is effective")));
  ASSERT_OK_AND_ASSIGN(const Calibration two, Calibrate({SyntheticRun(2), SyntheticRun(4)}));
  EXPECT_THAT(two.report.notes(), Not(Contains(HasSubstr("all groups have"))));
  EXPECT_THAT(two.report.notes(), Not(Contains(HasSubstr("effective"))));
}

TEST(CalibrationTest, TwoCellsFitButIdentifyNothing) {
  SyntheticOptions two;
  two.kinds = {CollectiveKind::kAllReduce};
  two.sizes = {1 << 12, 1 << 24};
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({SyntheticRun(4, two)}));
  const CalibrationReport& report = calibration.report;
  for (const CalibratedParameter& parameter : report.parameters()) {
    EXPECT_FALSE(parameter.identifiable()) << parameter.name();
    EXPECT_FALSE(parameter.has_low()) << parameter.name();
  }
  EXPECT_FALSE(report.parameters(0).kept());
  EXPECT_NEAR(report.parameters(0).value(), 30000, 3000);
  EXPECT_TRUE(report.parameters(2).kept());
  EXPECT_THAT(report.notes(), Contains(AllOf(HasSubstr("latency_ns[0] is not identifiable"),
                                             HasSubstr("fits best"))));
  EXPECT_THAT(FormatCalibration(report), HasSubstr("not identifiable, best fit"));
}

// Large sizes tell no latency, and what was given for it is no start, either.
TEST(CalibrationTest, KeepsALatencyOfNone) {
  SyntheticOptions large;
  large.sizes = {1 << 26, 1 << 27, 1 << 28};
  CalibrationRun run = SyntheticRun(4);
  run.transfers = MakeSyntheticTransfers(RingOf(4, 500, 10), 4, large);
  CalibrationOptions options;
  options.topology = RingOf(4, 0, 50);
  ASSERT_OK_AND_ASSIGN(const Calibration kept, Calibrate({run}, options));
  EXPECT_THAT(kept.report.notes(),
              Contains("latency_ns[0] is not identifiable from these transfers: it keeps 0"));
  EXPECT_TRUE(kept.report.parameters(1).identifiable());
  ASSERT_OK_AND_ASSIGN(const Calibration fitted, Calibrate({SyntheticRun(4)}, options));
  EXPECT_TRUE(fitted.report.parameters(0).identifiable());
  EXPECT_NEAR(fitted.report.parameters(0).value(), 30000, 900);
}

TEST(CalibrationTest, SaysThatNothingTellsTheNoise) {
  SyntheticOptions once;
  once.repeats = 1;
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({SyntheticRun(4, once)}));
  EXPECT_FALSE(calibration.report.has_noise_floor());
  EXPECT_THAT(calibration.report.notes(), Contains(HasSubstr("the noise floor is not known")));
}

TEST(CalibrationTest, WhatIsNotKnownIsNotZero) {
  CalibrationRun run = SyntheticRun(4);
  run.notes = {"its clocks disagree"};
  CalibrationOptions options;
  options.holdout = Holdout::kGroup;
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}, options));
  EXPECT_FALSE(calibration.report.has_holdout());
  EXPECT_THAT(calibration.report.notes(), Contains("its clocks disagree"));
}

TEST(CalibrationTest, WhatAGivenNetworkChangesIsSaid) {
  CalibrationOptions options;
  options.topology = RingOf(8, 500, 50);
  ASSERT_OK_AND_ASSIGN(const Calibration resized, Calibrate({SyntheticRun(4)}, options));
  EXPECT_THAT(resized.report.notes(),
              Contains("--topology has 8 NPUs; the network written has 4, as many as the largest "
                       "run has ranks"));
  EXPECT_THAT(resized.report.notes(), Not(Contains(HasSubstr("all-to-all"))));

  options.topology = RingOf(4, 500, 50);
  options.topology->system = DefaultSystemConfig(options.topology->network);
  ASSERT_OK_AND_ASSIGN(const Calibration ring, Calibrate({SyntheticRun(4)}, options));
  EXPECT_THAT(ring.report.notes(), Contains(HasSubstr("all-to-all is simulated as ring")));
  EXPECT_THAT(ring.report.notes(), Not(Contains(HasSubstr("NPUs"))));
}

TEST(CalibrationTest, WaitingThatIsLeftInTransfersShows) {
  CalibrationRun run = SyntheticRun(4);
  for (size_t i = 0; i < run.transfers.samples.size(); ++i) {
    TransferSample& sample = run.transfers.samples[i];
    sample.arrival_spread_ns = static_cast<double>(i * 7919 % 1000) / 1000 * sample.transfer_ns;
    sample.transfer_ns += 0.5 * sample.arrival_spread_ns;
  }
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate({run}));
  EXPECT_GT(calibration.report.arrival_spread().slope(), 0.2);
  EXPECT_THAT(calibration.report.notes(), Contains(HasSubstr("waiting is left in them")));
}

TEST(CalibrationTest, RefusesWhatItCannotUse) {
  ExpectRefused({CalibrationRun()}, {}, "no collective whose transfer can be timed");

  SyntheticOptions one_size;
  one_size.sizes = {4096};
  ExpectRefused({SyntheticRun(4, one_size)}, {}, "a single size");

  CalibrationRun cpu = SyntheticRun(2);
  cpu.device_kinds = {"CPU"};
  ExpectRefused({SyntheticRun(4), cpu}, {}, "different devices (CPU, GPU)");

  CalibrationRun both = SyntheticRun(4);
  both.within_nodes = true;
  ExpectRefused({both}, {}, "--topology");

  CalibrationOptions one_of_several;
  one_of_several.sizes = {4096};
  ExpectRefused({SyntheticRun(4)}, one_of_several, "--sizes leaves a single size, 4096 bytes");

  CalibrationOptions options;
  options.sizes = {1024, 1000};
  ExpectRefused({SyntheticRun(4)}, options, "1000 bytes, of which there are no transfers");
}

// Checks the limits of a calibration with the runs of these folders together.
void ExpectWithinLimits(const std::string& folders) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> traces,
                       ExpandPaths(FileSystem::Posix(), folders, {"", {".xplane.pb.gz"}}));
  ASSERT_OK_AND_ASSIGN(const std::vector<CalibrationRun> runs,
                       ReadCalibrationRuns(FileSystem::Posix(), traces));
  ASSERT_OK_AND_ASSIGN(const Calibration calibration, Calibrate(runs));
  const CalibrationReport& report = calibration.report;
  EXPECT_LE(report.holdout().mape_large(), 0.12) << folders;
  EXPECT_LE(report.holdout().mape_small(), 0.13) << folders;
  EXPECT_LE(report.holdout().mape(), 0.5 * report.uncalibrated().mape());
  EXPECT_GT(report.noise_floor(), 0.02);
  EXPECT_LT(std::abs(report.arrival_spread().slope()), 0.1);
}

TEST(CalibrationTest, TheBundledSweepIsPredictedWithinItsLimits) {
  ExpectWithinLimits("examples/sweep_cpu4");
}

TEST(CalibrationTest, MeasuredSweepsArePredictedWithinTheirLimits) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ExpectWithinLimits(absl::StrCat(*shared, "/traces/sweep_cuda4,", *shared, "/traces/sweep_cuda2"));
  ExpectWithinLimits(absl::StrCat(*shared, "/traces/sweep_cpu4"));
}

}  // namespace
}  // namespace meridian
