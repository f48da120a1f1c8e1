#include "astra_bridge/calibration/bootstrap.h"

#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kLatencyNs = 20000, kBandwidth = 5;

struct Fitted {
  std::vector<TransferCell> cells;
  ParameterFit fit;
};

Fitted FitNoisy(uint64_t seed, double noise) {
  SyntheticOptions options;
  options.seed = seed;
  options.noise = noise;
  Fitted fitted;
  fitted.cells = MakeSyntheticCells(RingOf(4, kLatencyNs, kBandwidth), {2, 4}, options);
  auto fit = FitParameters(AssumedFabric(4), fitted.cells);
  EXPECT_OK(fit.status());
  fitted.fit = *std::move(fit);
  return fitted;
}

TEST(BootstrapTest, TheTruthIsInsideAsOftenAsPromised) {
  constexpr int kRuns = 20;
  int latency_inside = 0, bandwidth_inside = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Fitted fitted = FitNoisy(100 + run, 0.2);
    const std::vector<ParameterInterval> intervals = BootstrapIntervals(fitted.fit, fitted.cells);
    ASSERT_THAT(intervals, SizeIs(2));
    latency_inside += intervals[0].low <= kLatencyNs && kLatencyNs <= intervals[0].high;
    bandwidth_inside += intervals[1].low <= kBandwidth && kBandwidth <= intervals[1].high;
    // Nor so wide that it says nothing.
    EXPECT_LT(intervals[0].high / intervals[0].low, 1.3);
    EXPECT_LT(intervals[1].high / intervals[1].low, 1.3);
  }
  // 19 of 20 are promised; fewer than 16 would happen in one of 400 runs of this test.
  EXPECT_GE(latency_inside, 16);
  EXPECT_GE(bandwidth_inside, 16);
}

TEST(BootstrapTest, MoreNoiseWiderIntervals) {
  const Fitted quiet = FitNoisy(1, 0.05), loud = FitNoisy(1, 0.5);
  const ParameterInterval narrow = BootstrapIntervals(quiet.fit, quiet.cells)[0];
  const ParameterInterval wide = BootstrapIntervals(loud.fit, loud.cells)[0];
  EXPECT_GT(wide.high / wide.low, narrow.high / narrow.low);
}

TEST(BootstrapTest, EqualSeedsGiveEqualIntervals) {
  const Fitted fitted = FitNoisy(1, 0.2);
  BootstrapOptions other;
  other.seed = 2;
  EXPECT_EQ(BootstrapIntervals(fitted.fit, fitted.cells)[0].low,
            BootstrapIntervals(fitted.fit, fitted.cells)[0].low);
  EXPECT_NE(BootstrapIntervals(fitted.fit, fitted.cells)[0].low,
            BootstrapIntervals(fitted.fit, fitted.cells, other)[0].low);
}

TEST(BootstrapTest, WhatIsNotIdentifiableHasNoInterval) {
  SyntheticOptions options;
  options.sizes = {1 << 16};
  const std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options);
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(AssumedFabric(4), cells));
  EXPECT_THAT(BootstrapIntervals(fit, cells), IsEmpty());
}

}  // namespace
}  // namespace meridian
