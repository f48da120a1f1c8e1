#include "astra_bridge/calibration/bootstrap.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

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

struct Sweep {
  std::string name;
  std::vector<CollectiveKind> kinds;
  std::vector<int32_t> ranks;
  std::vector<int64_t> sizes;
  double noise = 0;
  // Of what the engine misses: standard deviation of its logarithm, and correlation between a size
  // and the next.
  double miss = 0;
  double correlation = 0;
  int runs = 0;
  int least_identified = 0;
};

std::vector<int64_t> SizesByFactors(int64_t first, int64_t factor, int count) {
  std::vector<int64_t> sizes = {first};
  while (static_cast<int>(sizes.size()) < count) sizes.push_back(sizes.back() * factor);
  return sizes;
}

void AddMisses(const Sweep& sweep, uint64_t seed, std::vector<TransferCell>* cells) {
  std::mt19937_64 random(seed);
  std::map<std::pair<CollectiveKind, int32_t>, double> last;
  for (TransferCell& cell : *cells) {
    // Even draws with deviation 1.
    const double fresh = std::sqrt(12.0) * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5);
    const auto [miss, is_first] = last.try_emplace({cell.kind, cell.ranks}, fresh);
    if (!is_first) {
      miss->second = sweep.correlation * miss->second +
                     std::sqrt(1 - sweep.correlation * sweep.correlation) * fresh;
    }
    for (double& transfer_ns : cell.transfers_ns) {
      transfer_ns *= std::exp(sweep.miss * miss->second);
    }
    SummariseCell(&cell);
  }
}

std::vector<TransferCell> DrawCells(const Sweep& sweep, uint64_t seed) {
  SyntheticOptions options;
  options.kinds = sweep.kinds;
  options.sizes = sweep.sizes;
  options.noise = sweep.noise;
  options.seed = seed;
  std::vector<TransferCell> cells =
      MakeSyntheticCells(RingOf(4, kLatencyNs, kBandwidth), sweep.ranks, options);
  AddMisses(sweep, seed, &cells);
  return cells;
}

bool Contains(const ParameterInterval& interval, double value) {
  return interval.low <= value && value <= interval.high;
}

// 95 of 100 are promised.
TEST(BootstrapTest, TheTruthIsInsideAsOftenAsPromised) {
  const CollectiveKind kReduce = CollectiveKind::kAllReduce, kGather = CollectiveKind::kAllGather;
  const std::vector<Sweep> sweeps = {
      {"sweep", {kReduce, kGather}, {2, 4}, SizesByFactors(1 << 10, 8, 5), 0.04, 0, 0, 80, 76},
      {"four cells", {kReduce}, {4}, SizesByFactors(1 << 10, 16, 4), 0.04, 0, 0, 200, 160},
      {"six cells", {kReduce}, {4}, SizesByFactors(1 << 12, 4, 6), 0.05, 0, 0, 100, 90},
      {"two kinds", {kReduce, kGather}, {4}, SizesByFactors(1 << 12, 64, 3), 0.03, 0, 0, 100, 90},
      {"misses",
       {kReduce, kGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll},
       {4},
       SizesByFactors(1 << 10, 2, 14),
       0.04,
       0.15,
       0.7,
       40,
       38}};
  for (const Sweep& sweep : sweeps) {
    int identified = 0, latency_inside = 0, bandwidth_inside = 0;
    for (int run = 0; run < sweep.runs; ++run) {
      const std::vector<TransferCell> cells = DrawCells(sweep, 100 + run);
      ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(AssumedFabric(4), cells));
      const std::vector<ParameterInterval> intervals = BootstrapIntervals(fit);
      if (intervals.size() < 2) continue;
      ++identified;
      latency_inside += Contains(intervals[0], kLatencyNs);
      bandwidth_inside += Contains(intervals[1], kBandwidth);
    }
    EXPECT_GE(identified, sweep.least_identified) << sweep.name;
    EXPECT_GE(latency_inside, 0.88 * identified) << sweep.name;
    EXPECT_GE(bandwidth_inside, 0.88 * identified) << sweep.name;
  }
}

TEST(BootstrapTest, DimensionsHaveIntervalsOfTheirOwn) {
  Fabric truth = MeshOf(BlockShape::kRing, BlockShape::kSwitch);
  const std::vector<EngineParameter> parameters = ParametersOf(truth);
  const std::vector<double> values = {5000, 40, 30000, 5};
  for (size_t p = 0; p < values.size(); ++p) SetParameterValue(parameters[p], values[p], &truth);
  constexpr int kRuns = 15;
  size_t inside = 0;
  for (int run = 0; run < kRuns; ++run) {
    SyntheticOptions options;
    options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};
    options.sizes = SizesByFactors(1 << 10, 16, 4);
    options.noise = 0.05;
    options.seed = 100 + run;
    const std::vector<TransferCell> cells =
        MakeSyntheticCellsOfGroups(truth, {{0, 1}, {0, 2}, {0, 1, 2, 3}}, options);
    ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                         FitParameters(MeshOf(BlockShape::kRing, BlockShape::kSwitch), cells));
    const std::vector<ParameterInterval> intervals = BootstrapIntervals(fit);
    ASSERT_THAT(intervals, SizeIs(values.size()));
    for (size_t p = 0; p < values.size(); ++p) {
      inside += Contains(intervals[p], values[p]);
      EXPECT_LT(intervals[p].high / intervals[p].low, 1.5);
    }
  }
  EXPECT_GE(inside, 0.88 * kRuns * values.size());
}

TEST(BootstrapTest, MoreNoiseWiderIntervals) {
  const Fitted quiet = FitNoisy(1, 0.05), loud = FitNoisy(1, 0.5);
  const ParameterInterval narrow = BootstrapIntervals(quiet.fit)[0];
  const ParameterInterval wide = BootstrapIntervals(loud.fit)[0];
  EXPECT_GT(wide.high / wide.low, narrow.high / narrow.low);
}

TEST(BootstrapTest, EqualSeedsGiveEqualIntervals) {
  const Fitted fitted = FitNoisy(1, 0.2);
  BootstrapOptions other;
  other.seed = 2;
  EXPECT_EQ(BootstrapIntervals(fitted.fit)[0].low, BootstrapIntervals(fitted.fit)[0].low);
  EXPECT_NE(BootstrapIntervals(fitted.fit)[0].low, BootstrapIntervals(fitted.fit, other)[0].low);
}

TEST(BootstrapTest, WhatIsNotIdentifiableHasNoInterval) {
  SyntheticOptions options;
  options.sizes = {1 << 16};
  const std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options);
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(AssumedFabric(4), cells));
  EXPECT_THAT(BootstrapIntervals(fit), IsEmpty());
}

}  // namespace
}  // namespace meridian
