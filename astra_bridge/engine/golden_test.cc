// The engine gives the times of the real AstraSim, to the nanosecond.
#include <cstdint>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/golden_runs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

SimulationResult RunAgain(const GoldenRun& run, bool events_only) {
  SimulationOptions options;
  options.congestion = run.congestion;
  options.node_times = true;
  options.events_only = events_only;
  const absl::StatusOr<SimulationResult> result =
      Simulate(run.workload, run.network, run.system, options);
  EXPECT_OK(result.status()) << run.id;
  return result.ok() ? *result : SimulationResult();
}

void ExpectEqual(const GoldenRun& run, const SimulationResult& result) {
  ASSERT_THAT(result.finish_ns, SizeIs(run.finish_ns.size())) << run.id;
  for (size_t rank = 0; rank < run.finish_ns.size(); ++rank) {
    if (run.finish_ns[rank] < 0) continue;
    EXPECT_EQ(result.finish_ns[rank], run.finish_ns[rank]) << run.id << " rank " << rank;
  }
  if (run.nodes.empty()) return;
  ASSERT_THAT(result.nodes, SizeIs(run.nodes.size())) << run.id;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    EXPECT_EQ(result.nodes[i].rank, run.nodes[i].rank) << run.id;
    EXPECT_EQ(result.nodes[i].id, run.nodes[i].id) << run.id;
    EXPECT_EQ(result.nodes[i].issue_ns, run.nodes[i].issue_ns) << run.id << " node " << i;
    EXPECT_EQ(result.nodes[i].finish_ns, run.nodes[i].finish_ns) << run.id << " node " << i;
  }
}

TEST(GoldenTest, EqualsAstraSimOnSingleCollectivesAndSends) {
  const std::vector<GoldenRun> runs = SingleGoldenRuns();
  EXPECT_THAT(runs, SizeIs(1423));
  for (const GoldenRun& run : runs) ExpectEqual(run, RunAgain(run, /*events_only=*/false));
}

TEST(GoldenTest, EqualsAstraSimWithoutShortCuts) {
  for (const GoldenRun& run : SingleGoldenRuns())
    ExpectEqual(run, RunAgain(run, /*events_only=*/true));
}

TEST(GoldenTest, EqualsAstraSimOnConcurrentWorkloads) {
  const std::vector<GoldenRun> runs = ConcurrentGoldenRuns();
  EXPECT_THAT(runs, SizeIs(70));
  for (const GoldenRun& run : runs) {
    ExpectEqual(run, RunAgain(run, /*events_only=*/false));
    ExpectEqual(run, RunAgain(run, /*events_only=*/true));
  }
}

TEST(GoldenTest, EqualsAstraSimOnLargeRuns) {
  const std::vector<GoldenCost> costs = GoldenCosts();
  EXPECT_THAT(costs, SizeIs(50));
  for (const GoldenCost& cost : costs) {
    EXPECT_EQ(RunAgain(cost.run, /*events_only=*/false).makespan_ns(), cost.makespan_ns)
        << cost.name;
  }
}

}  // namespace
}  // namespace meridian
