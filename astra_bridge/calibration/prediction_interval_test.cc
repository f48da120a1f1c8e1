#include "astra_bridge/calibration/prediction_interval.h"

#include <cmath>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMiB = 1 << 20;

PredictionIntervals IntervalsOf(const CalibrationReport& report) {
  absl::StatusOr<PredictionIntervals> intervals = PredictionIntervals::FromReport(report);
  EXPECT_OK(intervals.status());
  return intervals.ok() ? *std::move(intervals) : PredictionIntervals();
}

TransferCell CellOf(int64_t bytes, std::vector<int32_t> participants, std::vector<double> ns) {
  TransferCell cell =
      EmptyCell(CollectiveKind::kAllReduce, bytes, std::move(participants), /*ranks=*/4);
  cell.transfers_ns = std::move(ns);
  SummariseCell(&cell);
  return cell;
}

// All-reduces of 1 and 16 MiB on two and four ranks, each as long as physics says.
CalibrationReport ReportOf(const std::vector<HeldOutError>& errors) {
  std::vector<TransferCell> cells;
  for (const std::vector<int32_t>& group :
       {std::vector<int32_t>{0, 1}, std::vector<int32_t>{0, 1, 2, 3}}) {
    for (const int64_t bytes : {kMiB, 16 * kMiB}) cells.push_back(CellOf(bytes, group, {100, 100}));
  }
  CalibrationReport report;
  DescribePredictionErrors(cells, {100, 100, 100, 100}, errors, &report);
  return report;
}

double LogFactor(const PredictionIntervals& intervals, int64_t bytes, double ranks) {
  return intervals.LogFactor({CollectiveKind::kAllReduce, bytes, ranks});
}

TEST(PredictionIntervalTest, GrowsBeyondTheRanksThatWereFitted) {
  std::vector<HeldOutError> held_out;
  for (int i = 0; i < 20; ++i) {
    held_out.push_back({kMiB, i % 2 == 0 ? 0.1 : -0.1, 0});
    held_out.push_back({kMiB, 0.6, 1});
    // Nothing of its kind was seen.
    held_out.push_back({kMiB, 9, std::nullopt});
  }
  const PredictionIntervals intervals = IntervalsOf(ReportOf(held_out));
  EXPECT_NEAR(LogFactor(intervals, kMiB, 2), 0.1, 1e-9);
  EXPECT_NEAR(LogFactor(intervals, kMiB, 3), 0.1, 1e-9);
  // Twice the ranks are off by 0.6 in all.
  EXPECT_NEAR(LogFactor(intervals, kMiB, 8), 0.6, 1e-9);
  EXPECT_NEAR(LogFactor(intervals, kMiB, 1), 0.6, 1e-9);
  EXPECT_NEAR(LogFactor(intervals, kMiB, 16), std::hypot(0.1, 2 * std::sqrt(0.36 - 0.01)), 1e-9);
}

// Physics over measured: 1, 2 and 4 for 1, 2 and 4 MiB: a factor of two for each doubling.
TEST(PredictionIntervalTest, GrowsBeyondTheSizesThatWereFitted) {
  std::vector<TransferCell> cells;
  for (const int64_t bytes : {kMiB, 2 * kMiB, 4 * kMiB}) {
    cells.push_back(CellOf(bytes, {0, 1}, {100, 100}));
  }
  CalibrationReport report;
  DescribePredictionErrors(cells, {100, 200, 400}, {{kMiB, 0.1, 0}}, &report);
  EXPECT_NEAR(report.factor_above_sizes(), 2, 1e-9);
  const PredictionIntervals intervals = IntervalsOf(report);
  EXPECT_NEAR(LogFactor(intervals, 4 * kMiB, 2), 0.1, 1e-9);
  EXPECT_NEAR(LogFactor(intervals, 8 * kMiB, 2), std::hypot(0.1, std::log(2)), 1e-9);
  // Four doublings go up and down.
  EXPECT_NEAR(LogFactor(intervals, 64 * kMiB, 2), std::hypot(0.1, 2 * std::log(2)), 1e-9);
  // Other kinds are as far off as physics: nine of ten of log 1, 2 and 4.
  EXPECT_GT(intervals.LogFactor({CollectiveKind::kAllGather, kMiB, 2}), std::log(3));
}

TEST(PredictionIntervalTest, HalvesAndMeansAreOfTheRepeats) {
  CalibrationReport report;
  DescribePredictionErrors({CellOf(kMiB, {0, 1}, {90, 110, 90, 110, 200})}, {100}, {}, &report);
  ASSERT_EQ(report.prediction_errors_size(), 1);
  // Mean 120, median 110; nothing was held out.
  EXPECT_NEAR(report.prediction_errors(0).mean_over_median(), 120.0 / 110, 1e-9);
  EXPECT_GT(report.prediction_errors(0).factor(), 2);
  EXPECT_NEAR(IntervalsOf(report).MeanOverMedian(7), 120.0 / 110, 1e-9);
}

TEST(PredictionIntervalTest, WhatWasNotFittedIsNamed) {
  const PredictionIntervals intervals = IntervalsOf(ReportOf({}));
  const auto beyond = [&](CollectiveKind kind, int64_t bytes, double ranks) {
    return intervals.Beyond({kind, bytes, ranks});
  };
  EXPECT_THAT(beyond(CollectiveKind::kAllReduce, 2 * kMiB, 4), IsEmpty());
  EXPECT_THAT(beyond(CollectiveKind::kAllReduce, 1, 4),
              ElementsAre("size outside the calibration"));
  EXPECT_THAT(beyond(CollectiveKind::kAllReduce, kMiB, 8),
              ElementsAre("number of ranks outside the calibration"));
  EXPECT_THAT(beyond(CollectiveKind::kAllGather, kMiB, 4),
              ElementsAre("kind not in the calibration"));
}

TEST(PredictionIntervalTest, OneWayThatIsAssumedMayBeOffByAsMuch) {
  CalibrationReport report = ReportOf({{kMiB, 0.1, 0}});
  CalibratedKind* fitted = report.add_calibrated_kinds();
  *fitted = report.calibrated_kinds(0);
  fitted->set_kind("p2p");
  report.set_factor_of_one_way(2);
  const PredictionIntervals intervals = IntervalsOf(report);
  EXPECT_NEAR(intervals.LogFactor({CollectiveKind::kPointToPoint, kMiB, 2, true}),
              std::hypot(0.1, std::log(2)), 1e-9);
  EXPECT_NEAR(intervals.LogFactor({CollectiveKind::kPointToPoint, kMiB, 2, false}), 0.1, 1e-9);
}

TEST(PredictionIntervalTest, NumbersThatCanNotBeMeantAreRefused) {
  const auto refused = [](const CalibrationReport& report) {
    return absl::IsInvalidArgument(PredictionIntervals::FromReport(report).status());
  };
  EXPECT_FALSE(refused(ReportOf({})));
  for (const double factor : {0.0, 0.5, -1.0, 1e9, std::nan(""), HUGE_VAL}) {
    CalibrationReport report = ReportOf({});
    report.mutable_prediction_errors(0)->set_factor(factor);
    EXPECT_TRUE(refused(report)) << factor;
    report = ReportOf({});
    report.mutable_prediction_errors(0)->set_factor_per_doubling(factor);
    EXPECT_TRUE(refused(report)) << factor;
    report = ReportOf({});
    report.set_factor_above_sizes(factor);
    EXPECT_TRUE(refused(report)) << factor;
  }
  CalibrationReport twice = ReportOf({});
  *twice.add_prediction_errors() = twice.prediction_errors(0);
  EXPECT_TRUE(refused(twice));
  CalibrationReport ranks = ReportOf({});
  ranks.mutable_calibrated_kinds(0)->set_least_ranks(0);
  EXPECT_TRUE(refused(ranks));
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
  EXPECT_EQ(LogFactor(none, 8, 2), 0);
  EXPECT_EQ(none.MeanOverMedian(8), 1);
}

// Of errors drawn as those that were held out, nine of ten are inside, whatever their size.
TEST(PredictionIntervalTest, HoldsWhatItPromises) {
  std::mt19937_64 random(7);
  for (const double deviation : {0.05, 0.2, 0.5}) {
    std::normal_distribution<double> off(0, deviation);
    std::vector<HeldOutError> held_out;
    for (int i = 0; i < 600; ++i) held_out.push_back({kMiB, off(random), 0});
    const double log_factor = LogFactor(IntervalsOf(ReportOf(held_out)), kMiB, 2);
    int inside = 0;
    for (int i = 0; i < 2000; ++i) inside += std::abs(off(random)) <= log_factor ? 1 : 0;
    EXPECT_GT(inside, 1720) << deviation;
    EXPECT_LT(inside, 1880) << deviation;
  }
}

}  // namespace
}  // namespace meridian
