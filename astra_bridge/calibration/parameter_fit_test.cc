#include "astra_bridge/calibration/parameter_fit.h"

#include <cmath>
#include <limits>
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

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kLatency = 0, kBandwidth = 1, kEndpointDelay = 2;

TEST(ParameterFitTest, FindsTheTruthWithoutNoise) {
  SyntheticOptions options;
  options.noise = 0;
  for (const double latency_ns : {700.0, 45000.0}) {
    for (const double bandwidth : {2.0, 180.0}) {
      ASSERT_OK_AND_ASSIGN(
          const ParameterFit fit,
          FitParameters(AssumedFabric(4),
                        MakeSyntheticCells(RingOf(4, latency_ns, bandwidth), {4}, options)));
      EXPECT_NEAR(fit.parameters[kLatency].value, latency_ns, 0.01 * latency_ns);
      EXPECT_NEAR(fit.parameters[kBandwidth].value, bandwidth, 0.01 * bandwidth);
      EXPECT_TRUE(fit.parameters[kLatency].identifiable);
      EXPECT_TRUE(fit.parameters[kBandwidth].identifiable);
    }
  }
}

TEST(ParameterFitTest, GroupsOfAllSizesShareTheParameters) {
  SyntheticOptions options;
  options.noise = 0;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(AssumedFabric(8),
                                     MakeSyntheticCells(RingOf(8, 20000, 10), {2, 4, 8}, options)));
  EXPECT_NEAR(fit.parameters[kLatency].value, 20000, 200);
  EXPECT_NEAR(fit.parameters[kBandwidth].value, 10, 0.1);
}

// Whatever was given, latency stands for what messages cost in all.
TEST(ParameterFitTest, TheEndpointDelayIsGivenUpBeforeLatency) {
  Fabric truth = RingOf(4, 500, 10);
  truth.system.endpoint_delay_ns = 30000;
  for (const BlockShape shape :
       {BlockShape::kRing, BlockShape::kSwitch, BlockShape::kFullyConnected}) {
    truth.network.dimensions[0].shape = shape;
    for (const double given_latency_ns : {0.0, 500.0}) {
      Fabric given = AssumedFabric(4);
      given.network.dimensions[0].shape = shape;
      given.network.dimensions[0].latency_ns = given_latency_ns;
      ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                           FitParameters(given, MakeSyntheticCells(truth, {4})));
      EXPECT_TRUE(fit.parameters[kEndpointDelay].kept);
      EXPECT_FALSE(fit.parameters[kEndpointDelay].identifiable);
      EXPECT_EQ(fit.parameters[kEndpointDelay].value, 10);
      EXPECT_TRUE(fit.parameters[kLatency].identifiable);
      // One hop for each message, two through a switch; at most four delays for three messages.
      const double hops = shape == BlockShape::kSwitch ? 2 : 1;
      const double latency_ns = fit.parameters[kLatency].value;
      EXPECT_GT(latency_ns * hops, 500 * hops + 30000);
      EXPECT_LT(latency_ns * hops, 500 * hops + 30000 * 4.5 / 3);
    }
  }
}

// On a ring, direct all-to-all sends messages over several hops: the larger the ring, the more hops
// for each message.
TEST(ParameterFitTest, TheEndpointDelayIsFittedWhereHopsAndMessagesDiffer) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllToAll, CollectiveKind::kAllReduce};
  options.noise = 0.01;
  Fabric truth = RingOf(16, 5000, 10);
  truth.system.endpoint_delay_ns = 20000;
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(16), MakeSyntheticCells(truth, {2, 4, 8, 16}, options)));
  EXPECT_TRUE(fit.parameters[kEndpointDelay].identifiable);
  EXPECT_NEAR(fit.parameters[kEndpointDelay].value, 20000, 1000);
  EXPECT_NEAR(fit.parameters[kLatency].value, 5000, 500);
  EXPECT_FALSE(fit.parameters[kLatency].includes_overhead);
}

TEST(ParameterFitTest, OneSizeAndOneGroupTellNothing) {
  SyntheticOptions options;
  options.sizes = {1 << 16};
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options)));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::identifiable, false)));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::kept, true)));
  EXPECT_EQ(fit.parameters[kLatency].value, 500);
  EXPECT_THAT(fit.parameters[kBandwidth].value, DoubleNear(50, 1e-9));
}

TEST(ParameterFitTest, LargeSizesAloneTellOnlyBandwidth) {
  SyntheticOptions options;
  options.sizes = {1 << 26, 1 << 27, 1 << 28};
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 500, 10), {4}, options)));
  EXPECT_FALSE(fit.parameters[kLatency].identifiable);
  EXPECT_EQ(fit.parameters[kLatency].value, 500);
  EXPECT_TRUE(fit.parameters[kBandwidth].identifiable);
  EXPECT_NEAR(fit.parameters[kBandwidth].value, 10, 0.5);
}

// What fits best is a line through both, which says nothing about how far it may be off.
TEST(ParameterFitTest, TwoCellsIdentifyNothing) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce};
  options.sizes = {1 << 10, 1 << 24};
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options)));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::identifiable, false)));
  EXPECT_TRUE(std::isinf(fit.widening));
  EXPECT_FALSE(fit.parameters[kLatency].kept);
  EXPECT_NEAR(fit.parameters[kLatency].value, 5000, 1000);
  EXPECT_NEAR(fit.parameters[kBandwidth].value, 10, 2);
}

// Six cells, but of three kinds, each of which may have an efficiency of its own.
TEST(ParameterFitTest, EfficienciesOfKindsUseUpFreedom) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                   CollectiveKind::kAllToAll};
  options.sizes = {1 << 10, 1 << 24};
  options.noise = 0;
  const std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options);
  ASSERT_OK_AND_ASSIGN(const ParameterFit six, FitParameters(AssumedFabric(4), cells));
  // Of the six, two are left: sqrt(6 / 2) * 4.303 / 1.96.
  EXPECT_NEAR(six.widening, 3.80, 0.01);
  ASSERT_OK_AND_ASSIGN(const ParameterFit four,
                       FitParameters(AssumedFabric(4), absl::MakeSpan(cells).first(4)));
  EXPECT_NEAR(four.widening, 2 * 6.48, 0.03);
  EXPECT_FALSE(four.parameters[kLatency].identifiable);
}

// What the engine misses for {0, 1} it misses for {2, 3}.
TEST(ParameterFitTest, GroupsThatAreAlikeAreEvidenceOnce) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllReduce};
  options.sizes = {1 << 10, 1 << 24};
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4),
                    MakeSyntheticCellsOfGroups(RingOf(4, 5000, 10), {{0, 1}, {2, 3}}, options)));
  EXPECT_TRUE(std::isinf(fit.widening));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::identifiable, false)));
}

// A latency of 0 has no logarithm to step from.
TEST(ParameterFitTest, WhatIsGivenIsNoStart) {
  const std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4});
  ASSERT_OK_AND_ASSIGN(const ParameterFit assumed, FitParameters(AssumedFabric(4), cells));
  for (const Fabric& given : {RingOf(4, 0, 50), RingOf(4, 1e-6, 1e9), RingOf(4, 1e12, 1e-6)}) {
    ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(given, cells));
    for (size_t p : {kLatency, kBandwidth}) {
      EXPECT_TRUE(fit.parameters[p].identifiable);
      EXPECT_DOUBLE_EQ(fit.parameters[p].value, assumed.parameters[p].value);
    }
  }
}

TEST(ParameterFitTest, ALatencyOfNoneIsKeptWhereItIsNotTold) {
  SyntheticOptions options;
  options.sizes = {1 << 26, 1 << 27, 1 << 28};
  Fabric given = RingOf(4, 0, 50);
  given.system.endpoint_delay_ns = 0;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(given, MakeSyntheticCells(RingOf(4, 500, 10), {4}, options)));
  EXPECT_TRUE(fit.parameters[kLatency].kept);
  EXPECT_EQ(fit.parameters[kLatency].value, 0);
  EXPECT_EQ(fit.parameters[kEndpointDelay].value, 0);
  EXPECT_TRUE(fit.parameters[kBandwidth].identifiable);
}

// The engine takes no time at all for the smallest then.
TEST(ParameterFitTest, NothingIsInfiniteWithoutLatency) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kPointToPoint};
  options.sizes = {8, 1 << 10};
  Fabric given = RingOf(2, 0, 50);
  given.system.endpoint_delay_ns = 0;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(given, MakeSyntheticCells(given, {2}, options)));
  for (const FittedParameter& parameter : fit.parameters) {
    EXPECT_TRUE(std::isfinite(parameter.value)) << ParameterName(parameter.parameter);
  }
  for (double engine_ns : fit.engine_ns) EXPECT_GE(engine_ns, 1);
  for (const std::vector<double>& row : fit.sensitivities) {
    for (double sensitivity : row) EXPECT_TRUE(std::isfinite(sensitivity));
  }
}

// steps x latency + overhead: groups of another size have other numbers of steps.
TEST(ParameterFitTest, GroupsOfOneSizeTellAnEffectiveLatency) {
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit one,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 5000, 10), {4})));
  EXPECT_TRUE(one.parameters[kLatency].identifiable);
  EXPECT_TRUE(one.parameters[kLatency].includes_overhead);
  EXPECT_FALSE(one.parameters[kBandwidth].includes_overhead);
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit several,
      FitParameters(AssumedFabric(8), MakeSyntheticCells(RingOf(8, 5000, 10), {2, 4, 8})));
  EXPECT_TRUE(several.parameters[kLatency].identifiable);
  EXPECT_FALSE(several.parameters[kLatency].includes_overhead);
}

TEST(ParameterFitTest, WildCellsHardlyMatter) {
  SyntheticOptions options;
  options.noise = 0.02;
  std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options);
  cells[3].median_ns *= 20;
  cells[17].median_ns /= 20;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(AssumedFabric(4), cells));
  EXPECT_NEAR(fit.parameters[kLatency].value, 5000, 500);
  EXPECT_NEAR(fit.parameters[kBandwidth].value, 10, 1);
}

// Of a network of two dimensions: latency and bandwidth of each, then the endpoint delay.
Fabric TrueMesh(BlockShape second) {
  Fabric mesh = MeshOf(BlockShape::kRing, second);
  const std::vector<EngineParameter> parameters = ParametersOf(mesh);
  SetParameterValue(parameters[0], 5000, &mesh);
  SetParameterValue(parameters[1], 40, &mesh);
  SetParameterValue(parameters[2], 30000, &mesh);
  SetParameterValue(parameters[3], 5, &mesh);
  return mesh;
}

TEST(ParameterFitTest, GroupsWithinDimensionsTellEach) {
  for (const BlockShape second : {BlockShape::kRing, BlockShape::kSwitch}) {
    const Fabric truth = TrueMesh(second);
    SyntheticOptions options;
    options.noise = 0.03;
    ASSERT_OK_AND_ASSIGN(
        const ParameterFit fit,
        FitParameters(MeshOf(BlockShape::kRing, second),
                      MakeSyntheticCellsOfGroups(truth, {{0, 1}, {0, 2}, {0, 1, 2, 3}}, options)));
    ASSERT_EQ(fit.parameters.size(), 5u);
    for (size_t p = 0; p < 4; ++p) {
      const double value = ParameterValue(truth, fit.parameters[p].parameter);
      EXPECT_TRUE(fit.parameters[p].identifiable) << p;
      EXPECT_NEAR(fit.parameters[p].value, value, 0.05 * value) << p;
    }
    EXPECT_TRUE(fit.parameters[4].kept);
  }
}

TEST(ParameterFitTest, DimensionsThatNoGroupUsesAreKept) {
  const Fabric truth = TrueMesh(BlockShape::kRing);
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(MeshOf(BlockShape::kRing, BlockShape::kRing),
                                     MakeSyntheticCellsOfGroups(truth, {{0, 1}, {2, 3}})));
  EXPECT_TRUE(fit.parameters[0].identifiable);
  EXPECT_TRUE(fit.parameters[1].identifiable);
  EXPECT_NEAR(fit.parameters[0].value, 5000, 250);
  EXPECT_NEAR(fit.parameters[1].value, 40, 2);
  for (size_t p : {2, 3}) EXPECT_TRUE(fit.parameters[p].kept) << p;
}

// Phases of both follow each other: only the sum of their latencies is seen.
TEST(ParameterFitTest, GroupsAcrossDimensionsOnlyDoNotTellThemApart) {
  SyntheticOptions options;
  options.noise = 0.03;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(MeshOf(BlockShape::kRing, BlockShape::kRing),
                                     MakeSyntheticCellsOfGroups(TrueMesh(BlockShape::kRing),
                                                                {{0, 1, 2, 3}}, options)));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::kept, true)));
}

constexpr double kTrueLatencyNs = 20000, kGibPerS = 5;

struct Fitted {
  std::vector<TransferCell> cells;
  ParameterFit fit;
};

Fitted FitNoisy(uint64_t seed, double noise) {
  SyntheticOptions options;
  options.seed = seed;
  options.noise = noise;
  Fitted fitted;
  fitted.cells = MakeSyntheticCells(RingOf(4, kTrueLatencyNs, kGibPerS), {2, 4}, options);
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
      MakeSyntheticCells(RingOf(4, kTrueLatencyNs, kGibPerS), sweep.ranks, options);
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
      latency_inside += Contains(intervals[0], kTrueLatencyNs);
      bandwidth_inside += Contains(intervals[1], kGibPerS);
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
  EXPECT_EQ(BootstrapIntervals(fitted.fit)[0].low, BootstrapIntervals(fitted.fit)[0].low);
  EXPECT_NE(BootstrapIntervals(fitted.fit)[0].low,
            BootstrapIntervals(fitted.fit, /*seed=*/2)[0].low);
}

TEST(BootstrapTest, WhatIsNotIdentifiableHasNoInterval) {
  SyntheticOptions options;
  options.sizes = {1 << 16};
  const std::vector<TransferCell> cells = MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options);
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit, FitParameters(AssumedFabric(4), cells));
  EXPECT_THAT(BootstrapIntervals(fit), IsEmpty());
}

TEST(EvidenceTest, GroupsThatAreAlikeAreOnePoint) {
  EXPECT_THAT(EvidencePoints({EmptyCell(CollectiveKind::kAllReduce, 64, {0, 1}),
                              EmptyCell(CollectiveKind::kAllReduce, 64, {2, 3}),
                              EmptyCell(CollectiveKind::kAllReduce, 64, {0, 2}),
                              EmptyCell(CollectiveKind::kAllGather, 64, {0, 1})},
                             {100, 100, 200, 100}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
}

// Variance 1; all three pairs of neighbours are unlike, or all but one are alike.
TEST(EvidenceTest, NeighboursAreThoseOfTheNextSize) {
  const std::vector<TransferCell> cells = {EmptyCell(CollectiveKind::kAllReduce, 400, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 100, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 300, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 200, {0, 1})};
  EXPECT_EQ(NeighbourCorrelation(cells, {-1, 1, 1, -1}, 0), 0);
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, {-1, 1, -1, 1}, 0), 1.0 / 3);
}

TEST(EvidenceTest, WhatAFitTakesIsAddedAgain) {
  const std::vector<TransferCell> cells = {EmptyCell(CollectiveKind::kAllReduce, 100, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 200, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 300, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 400, {0, 1})};
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, {1, 1, -1, -1}, 1), 1.0 / 3 + 1.0 / 4);
}

TEST(EvidenceTest, TheMeanOfAKindIsNoCorrelation) {
  const std::vector<TransferCell> cells = {EmptyCell(CollectiveKind::kAllReduce, 100, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllReduce, 200, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllGather, 100, {0, 1}),
                                           EmptyCell(CollectiveKind::kAllGather, 200, {0, 1})};
  EXPECT_EQ(NeighbourCorrelation(cells, {1, 1, -1, -1}, 0), 0);
}

TEST(EvidenceTest, CorrelationHasAnEnd) {
  std::vector<TransferCell> cells;
  std::vector<double> residuals;
  for (int i = 0; i < 100; ++i) {
    cells.push_back(EmptyCell(CollectiveKind::kAllReduce, 8 + i, {0, 1}));
    residuals.push_back(i < 50 ? -1 : 1);
  }
  EXPECT_DOUBLE_EQ(NeighbourCorrelation(cells, residuals, 0), 0.9);
}

TEST(EvidenceTest, WidensByFreedom) {
  // sqrt(4 / 2) * 4.303 / 1.96.
  EXPECT_NEAR(Widening(4, 2, 0), 3.105, 0.005);
  EXPECT_NEAR(Widening(3, 2, 0), std::sqrt(3.0) * 12.706 / 1.96, 0.02);
  EXPECT_NEAR(Widening(10000, 2, 0), 1, 0.001);
}

// (1 + 0.5) / (1 - 0.5) = 3: of 30 degrees of freedom 10 are left.
TEST(EvidenceTest, WidensByCorrelation) {
  EXPECT_NEAR(Widening(32, 2, 0.5), std::sqrt(32.0 / 30 * 3) * 2.228 / 1.96, 0.005);
}

TEST(EvidenceTest, NoFreedomNoEnd) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Widening(2, 2, 0), kInfinity);
  EXPECT_EQ(Widening(1, 2, 0), kInfinity);
  EXPECT_EQ(Widening(4, 2, 0.5), kInfinity);
}

// As printed in tables.
TEST(StudentTest, IsTheTables) {
  EXPECT_NEAR(StudentQuantile95(1), 12.706, 0.013);
  EXPECT_NEAR(StudentQuantile95(2), 4.303, 0.004);
  EXPECT_NEAR(StudentQuantile95(3), 3.182, 0.003);
  EXPECT_NEAR(StudentQuantile95(10), 2.228, 0.002);
  EXPECT_NEAR(StudentQuantile95(30), 2.042, 0.002);
  EXPECT_NEAR(StudentQuantile95(120), 1.980, 0.002);
  EXPECT_NEAR(StudentQuantile95(1e6), 1.960, 0.001);
}

TEST(StudentTest, MoreFreedomIsNeverWorse) {
  double last = StudentQuantile95(1);
  for (double freedom = 1.5; freedom < 2000; freedom *= 1.5) {
    const double next = StudentQuantile95(freedom);
    EXPECT_LT(next, last) << freedom;
    last = next;
  }
}

}  // namespace
}  // namespace meridian
