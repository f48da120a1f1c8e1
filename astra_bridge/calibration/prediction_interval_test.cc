#include "astra_bridge/calibration/prediction_interval.h"

#include <cmath>
#include <random>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

constexpr int64_t kMiB = 1 << 20;

PredictionIntervals IntervalsOf(const CalibrationReport& report) {
  absl::StatusOr<PredictionIntervals> intervals = PredictionIntervals::FromReport(report);
  EXPECT_OK(intervals.status());
  return intervals.ok() ? *std::move(intervals) : PredictionIntervals();
}

CalibrationReport Report(const std::vector<PredictionError>& errors) {
  CalibrationReport report;
  for (const PredictionError& error : errors) *report.add_prediction_errors() = error;
  for (const double ranks : {2.0, 4.0}) {
    for (const int64_t bytes : {int64_t{1024}, 16 * kMiB}) {
      CalibratedCorrection* point = report.add_corrections();
      point->set_kind("all-reduce");
      point->set_bytes(bytes);
      point->set_ranks(ranks);
    }
  }
  return report;
}

TEST(PredictionIntervalTest, GrowsBeyondWhatWasFitted) {
  std::vector<HeldOutError> held_out;
  for (int i = 0; i < 20; ++i) {
    held_out.push_back({kMiB, i % 2 == 0 ? 0.1 : -0.1, 0});
    held_out.push_back({kMiB, 0.6, 1});
    // Nothing of its kind was seen.
    held_out.push_back({kMiB, 9, std::nullopt});
  }
  const PredictionIntervals intervals =
      IntervalsOf(Report(MeasurePredictionErrors(held_out, false)));
  const auto log_factor = [&](int64_t bytes, double ranks) {
    return intervals.LogFactor({CollectiveKind::kAllReduce, bytes, ranks});
  };
  // What sizes were off by, what recordings move by (1.645 x 1.2533 x 10 %), and what jobs add.
  const double within = std::hypot(0.1, 0.206165, 0.2);
  EXPECT_NEAR(log_factor(kMiB, 2), within, 1e-4);
  EXPECT_NEAR(log_factor(kMiB, 3), within, 1e-4);
  const double per_doubling = std::sqrt(0.6 * 0.6 - 0.1 * 0.1);
  EXPECT_NEAR(log_factor(kMiB, 8), std::hypot(within, per_doubling), 1e-4);
  EXPECT_NEAR(log_factor(kMiB, 1), std::hypot(within, per_doubling), 1e-4);
  EXPECT_NEAR(log_factor(kMiB, 16), std::hypot(within, 2 * per_doubling), 1e-4);
  EXPECT_NEAR(log_factor(64 * kMiB, 2), std::hypot(within, 0.2), 1e-4);
  EXPECT_GT(log_factor(1, 2), log_factor(1024, 2));
  EXPECT_NEAR(intervals.LogFactor({CollectiveKind::kAllGather, kMiB, 2}), std::hypot(within, 0.7),
              1e-4);
  EXPECT_NEAR(intervals.LogDeviation({CollectiveKind::kAllReduce, kMiB, 2}), within / 1.645, 1e-4);
}

// Two ranks of eight share their host with six others, of which two and four say nothing.
TEST(PredictionIntervalTest, GrowsWithTheRanksOfTheRun) {
  const PredictionIntervals intervals =
      IntervalsOf(Report(MeasurePredictionErrors({}, /*on_processors=*/false)));
  const auto log_factor = [&](double ranks, int64_t ranks_of_run) {
    return intervals.LogFactor({CollectiveKind::kAllReduce, kMiB, ranks, false, ranks_of_run});
  };
  EXPECT_EQ(log_factor(2.8, 4), log_factor(4, 4));
  EXPECT_EQ(log_factor(4, 8), log_factor(8, 8));
  EXPECT_GT(log_factor(4, 8), log_factor(4, 4));
}

// A ring of eight has 7 / 3 times the steps of one of four.
TEST(PredictionIntervalTest, SmallTransfersMayGrowAsARing) {
  std::vector<HeldOutError> held_out;
  for (int i = 0; i < 20; ++i) {
    for (const int64_t bytes : {int64_t{1024}, kMiB}) {
      held_out.push_back({bytes, 0.1, 0});
      held_out.push_back({bytes, 0.1, 1});
    }
  }
  const std::vector<PredictionError> errors = MeasurePredictionErrors(held_out, false);
  EXPECT_GT(errors[0].factor_per_doubling(), 7.0 / 3);
  EXPECT_LT(errors[1].factor_per_doubling(), 1.5);
}

// Half a doubling, off by as much as sizes are, adds nothing; off by 0.5, it adds what is beyond.
TEST(PredictionIntervalTest, RanksAddToWhatSizesAreOffBy) {
  for (const double off : {0.2, 0.5}) {
    std::vector<HeldOutError> held_out;
    for (int i = 0; i < 20; ++i) {
      held_out.push_back({kMiB, 0.2, 0});
      held_out.push_back({kMiB, off, 0.5});
    }
    EXPECT_NEAR(std::log(MeasurePredictionErrors(held_out, false)[1].factor_per_doubling()),
                off == 0.2 ? 0.4 : 2 * std::sqrt(0.5 * 0.5 - 0.2 * 0.2), 1e-6);
  }
}

TEST(PredictionIntervalTest, NumbersThatCanNotBeMeantAreRefused) {
  const std::vector<PredictionError> errors = MeasurePredictionErrors({}, false);
  const auto refused = [](const CalibrationReport& report) {
    return absl::IsInvalidArgument(PredictionIntervals::FromReport(report).status());
  };
  EXPECT_FALSE(refused(Report(errors)));
  for (const double factor : {0.0, 0.5, -1.0, 1e9, std::nan(""), HUGE_VAL}) {
    CalibrationReport report = Report(errors);
    report.mutable_prediction_errors(0)->set_factor(factor);
    EXPECT_TRUE(refused(report)) << factor;
    report = Report(errors);
    report.mutable_prediction_errors(1)->set_factor_per_doubling(factor);
    EXPECT_TRUE(refused(report)) << factor;
  }
  CalibrationReport twice = Report(errors);
  *twice.add_prediction_errors() = errors[0];
  EXPECT_TRUE(refused(twice));
  for (const double ranks : {0.0, -2.0, std::nan(""), HUGE_VAL}) {
    CalibrationReport report = Report(errors);
    report.mutable_corrections(0)->set_ranks(ranks);
    EXPECT_TRUE(refused(report)) << ranks;
  }
}

TEST(PredictionIntervalTest, WhatLiesInsideIsCounted) {
  IntervalCoverage coverage;
  CountInside(2, 1, 3, &coverage);
  CountInside(4, 1, 3, &coverage);
  EXPECT_EQ(coverage.inside(), 1);
  EXPECT_EQ(coverage.n(), 2);
  EXPECT_EQ(coverage.promised(), 0.9);
}

TEST(PredictionIntervalTest, WithoutACalibrationThereAreNone) {
  const PredictionIntervals none = IntervalsOf(CalibrationReport());
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.LogFactor({CollectiveKind::kAllReduce, 8, 2}), 0);
}

TEST(PredictionIntervalTest, WhatWasNotHeldOutIsAssumed) {
  const std::vector<PredictionError> devices = MeasurePredictionErrors({}, false);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[1].from_bytes(), kMiB);
  EXPECT_GT(devices[0].factor(), 1.25);
  // One number of ranks tells nothing of others.
  EXPECT_GT(devices[0].factor_per_doubling(), 2);
  EXPECT_GT(MeasurePredictionErrors({}, true)[1].factor(), devices[1].factor());
}

// Of errors drawn as those that were held out, nine of ten are inside, whatever their size.
TEST(PredictionIntervalTest, HoldsWhatItPromises) {
  std::mt19937_64 random(7);
  for (const double deviation : {0.05, 0.2, 0.5}) {
    std::normal_distribution<double> off(0, deviation), moved(0, 0.10 * 1.2533),
        of_jobs(0, 0.2 / 1.645);
    std::vector<HeldOutError> held_out;
    for (int i = 0; i < 600; ++i) held_out.push_back({kMiB, off(random), 0});
    const PredictionIntervals intervals =
        IntervalsOf(Report(MeasurePredictionErrors(held_out, false)));
    const double log_factor = intervals.LogFactor({CollectiveKind::kAllReduce, kMiB, 2});
    int inside = 0;
    for (int i = 0; i < 2000; ++i) {
      inside += std::abs(off(random) + moved(random) + of_jobs(random)) <= log_factor ? 1 : 0;
    }
    EXPECT_GT(inside, 1720) << deviation;
    EXPECT_LT(inside, 1880) << deviation;
  }
}

}  // namespace
}  // namespace meridian
