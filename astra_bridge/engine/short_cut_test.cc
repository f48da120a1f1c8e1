// Short cuts give the same times as all events do, on random simulations.
#include <cstdint>
#include <random>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/random_workload.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

void CompareOnRandomSimulations(const RandomSimulationOptions& options, int64_t count) {
  std::mt19937_64 random(20240229);
  for (int64_t i = 0; i < count; ++i) {
    const RandomSimulation simulation = MakeRandomSimulation(options, random);
    SimulationOptions run;
    run.congestion = simulation.congestion;
    run.node_times = true;
    ASSERT_OK_AND_ASSIGN(const SimulationResult result,
                         Simulate(simulation.workload, simulation.network, simulation.system, run));
    run.events_only = true;
    ASSERT_OK_AND_ASSIGN(const SimulationResult expected,
                         Simulate(simulation.workload, simulation.network, simulation.system, run));
    ASSERT_EQ(result.finish_ns, expected.finish_ns) << i;
    for (size_t node = 0; node < expected.nodes.size(); ++node) {
      ASSERT_EQ(result.nodes[node].issue_ns, expected.nodes[node].issue_ns) << i;
      ASSERT_EQ(result.nodes[node].finish_ns, expected.nodes[node].finish_ns) << i;
    }
  }
}

TEST(ShortCutTest, EqualsTheEventsOnRings) {
  RandomSimulationOptions options;
  options.rings_only = true;
  CompareOnRandomSimulations(options, 5000);
}

TEST(ShortCutTest, EqualsTheEventsAmongOtherAlgorithms) {
  CompareOnRandomSimulations(RandomSimulationOptions(), 5000);
}

TEST(ShortCutTest, EqualsTheEventsInSeveralDimensions) {
  RandomSimulationOptions options;
  options.max_dimensions = 3;
  options.max_npus = 24;
  CompareOnRandomSimulations(options, 2000);
}

}  // namespace
}  // namespace meridian
