#include "astra_bridge/calibration/physics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/calibration/testing/synthetic_cells.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

constexpr bool kWithIntervals = true;

// Cells of a network with an overhead.
std::vector<TransferCell> PortCells(const Fabric& truth, absl::Span<const int32_t> ranks,
                                    double overhead_ns, const SyntheticOptions& options = {}) {
  std::vector<TransferCell> cells = MakeSyntheticCells(truth, ranks, options);
  for (TransferCell& cell : cells) {
    for (double& ns : cell.transfers_ns) ns += overhead_ns;
    SummariseCell(&cell);
  }
  return cells;
}

void ExpectTold(const CalibratedParameter& parameter, const char* name, double truth,
                double relative) {
  EXPECT_EQ(parameter.name(), name);
  EXPECT_TRUE(parameter.identifiable()) << name;
  EXPECT_NEAR(parameter.value(), truth, relative * truth) << name;
  EXPECT_LE(parameter.low(), truth) << name;
  EXPECT_GE(parameter.high(), truth) << name;
}

TEST(PhysicsTest, FindsLatencyBandwidthAndOverhead) {
  const Fabric truth = LinksOf(4, 30000, 2);
  ASSERT_OK_AND_ASSIGN(
      const Physics physics,
      FitPhysics(AssumedFabric({4}), PortCells(truth, {2, 4}, 50000), kWithIntervals));
  ASSERT_EQ(physics.parameters.size(), 3u);
  ExpectTold(physics.parameters[0], "latency_ns[0]", 30000, 0.06);
  ExpectTold(physics.parameters[1], "bandwidth_gib_per_s[0]", 2, 0.02);
  ExpectTold(physics.parameters[2], "overhead_ns", 50000, 0.1);
  EXPECT_FALSE(physics.latency_includes_overhead);
}

// A shaped link lets a burst of 64 KiB through at once: the middle sizes are up to three times as
// quick as bandwidth allows, and must not count for it.
TEST(PhysicsTest, SizesInBetweenDoNotMoveTheBandwidth) {
  const Fabric truth = LinksOf(4, 40000, 0.1112);
  std::vector<TransferCell> cells = PortCells(truth, {2, 4}, 10000);
  const double burst_ns = 65536 / truth.network.dimensions[0].bytes_per_ns;
  for (TransferCell& cell : cells) {
    const double free_ns = 100000;
    for (double& ns : cell.transfers_ns) ns = std::max(std::min(ns, free_ns), ns - burst_ns);
    SummariseCell(&cell);
  }
  ASSERT_OK_AND_ASSIGN(const Physics physics,
                       FitPhysics(AssumedFabric({4}), cells, kWithIntervals));
  EXPECT_NEAR(physics.parameters[1].value(), 0.1112, 0.04 * 0.1112);
}

TEST(PhysicsTest, OneNumberOfStepsTellsNoOverhead) {
  SyntheticOptions options;
  options.kinds = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter};
  ASSERT_OK_AND_ASSIGN(
      const Physics physics,
      FitPhysics(AssumedFabric({4}), PortCells(LinksOf(4, 30000, 2), {4}, 30000, options)));
  EXPECT_TRUE(physics.latency_includes_overhead);
  EXPECT_FALSE(physics.parameters[2].identifiable());
  EXPECT_EQ(physics.overhead_ns, 0);
  // Three steps.
  EXPECT_NEAR(physics.parameters[0].value(), 40000, 4000);
}

TEST(PhysicsTest, LargeSizesAloneDoNotTellTheLatency) {
  SyntheticOptions options;
  options.sizes = {1 << 22, 1 << 23, 1 << 24};
  ASSERT_OK_AND_ASSIGN(
      const Physics physics,
      FitPhysics(AssumedFabric({4}), PortCells(LinksOf(4, 1000, 2), {2, 4}, 0, options)));
  EXPECT_FALSE(physics.parameters[0].identifiable());
  EXPECT_EQ(physics.parameters[0].value(), 500);
  EXPECT_TRUE(physics.parameters[1].identifiable());
  EXPECT_NEAR(physics.parameters[1].value(), 2, 0.1);
}

// Groups within a node cross the first level, those across nodes the second.
TEST(PhysicsTest, TellsLevelsApart) {
  Fabric truth = AssumedFabric({2, 2});
  truth.network.dimensions[0].bytes_per_ns = GibibytesPerSecondToBytesPerNs(100);
  truth.network.dimensions[0].latency_ns = 3000;
  truth.network.dimensions[1].bytes_per_ns = GibibytesPerSecondToBytesPerNs(5);
  truth.network.dimensions[1].latency_ns = 20000;
  SyntheticOptions options;
  options.sizes.push_back(1 << 24);
  ASSERT_OK_AND_ASSIGN(
      const Physics physics,
      FitPhysics(AssumedFabric({2, 2}),
                 MakeSyntheticCellsOfGroups(truth, {{0, 1}, {2, 3}, {0, 2}, {1, 3}}, options)));
  EXPECT_NEAR(physics.parameters[0].value(), 3000, 600);
  EXPECT_NEAR(physics.parameters[1].value(), 100, 10);
  EXPECT_NEAR(physics.parameters[2].value(), 20000, 4000);
  EXPECT_NEAR(physics.parameters[3].value(), 5, 0.5);
}

// By hand: of four ranks each sends three quarters of its bytes by one port.
TEST(PhysicsTest, AllToAllSharesThePort) {
  Physics physics;
  physics.fabric = LinksOf(4, 0, 1);
  physics.overhead_ns = 1000;
  const TransferCell cell = EmptyCell(CollectiveKind::kAllToAll, 1 << 20, {0, 1, 2, 3});
  EXPECT_EQ(PortFactor(physics.fabric, cell), 3);
  ASSERT_OK_AND_ASSIGN(const std::vector<double> times_ns, PhysicalTimesNs(physics, {cell}));
  EXPECT_NEAR(times_ns[0], 1000 + 0.75 * 1048576 / GibibytesPerSecondToBytesPerNs(1), 100);
}

}  // namespace
}  // namespace meridian
