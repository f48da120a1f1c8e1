#include "astra_bridge/calibration/parameter_fit.h"

#include <cmath>

#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Field;

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

TEST(ParameterFitTest, TheEndpointDelayCannotBeToldFromLatency) {
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 5000, 10), {4})));
  EXPECT_FALSE(fit.parameters[kEndpointDelay].identifiable);
  EXPECT_EQ(fit.parameters[kEndpointDelay].value, 10);
  EXPECT_GT(fit.parameters[kEndpointDelay].log_deviation, kMaxLogDeviation);
}

TEST(ParameterFitTest, OneSizeAndOneGroupTellNothing) {
  SyntheticOptions options;
  options.sizes = {1 << 16};
  ASSERT_OK_AND_ASSIGN(
      const ParameterFit fit,
      FitParameters(AssumedFabric(4), MakeSyntheticCells(RingOf(4, 5000, 10), {4}, options)));
  EXPECT_THAT(fit.parameters, Each(Field(&FittedParameter::identifiable, false)));
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

// The engine takes no time at all for the smallest then.
TEST(ParameterFitTest, ANetworkWithoutLatencyIsAStart) {
  SyntheticOptions options;
  options.kinds = {CommKind::kPointToPoint};
  options.sizes = {8, 1 << 10, 1 << 16, 1 << 22};
  Fabric start = RingOf(2, 0, 50);
  start.system.endpoint_delay_ns = 0;
  ASSERT_OK_AND_ASSIGN(const ParameterFit fit,
                       FitParameters(start, MakeSyntheticCells(RingOf(2, 5000, 10), {2}, options)));
  for (const FittedParameter& parameter : fit.parameters) {
    EXPECT_TRUE(std::isfinite(parameter.value)) << ParameterName(parameter.parameter);
  }
  for (double engine_ns : fit.engine_ns) EXPECT_GE(engine_ns, 1);
  for (const std::vector<double>& row : fit.sensitivities) {
    for (double sensitivity : row) EXPECT_TRUE(std::isfinite(sensitivity));
  }
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

}  // namespace
}  // namespace meridian
