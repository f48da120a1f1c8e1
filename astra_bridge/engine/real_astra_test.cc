// The real AstraSim and the engine on random workloads, node by node. Needs AstraSim's two
// programs, as its own build makes them:
//
//   ./bazelw test --test_env=MERIDIAN_ASTRA_BIN=/path/to/astra-sim/build/astra_analytical/build/bin
//       //astra_bridge/engine:engine_test
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/random_workload.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

// AstraSim has no meshes and, with congestion, neither several dimensions nor rings of two.
bool CanRun(const RandomSimulation& simulation) {
  for (const NetworkDimension& dimension : simulation.network.dimensions) {
    if (dimension.shape == BlockShape::kMesh) return false;
  }
  if (simulation.congestion == Congestion::kUnaware) return true;
  const NetworkDimension& first = simulation.network.dimensions[0];
  return simulation.network.dimensions.size() == 1 &&
         (first.shape != BlockShape::kRing || first.npus > 2);
}

class RealAstraTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("MERIDIAN_ASTRA_BIN");
    if (folder == nullptr) GTEST_SKIP() << "skipped: MERIDIAN_ASTRA_BIN names no AstraSim";
    folder_ = folder;
  }

  void CompareOnRandomSimulations(RandomSimulationOptions options, int count) {
    options.whole_partitions = true;
    int runs = 0;
    int crashes = 0;
    int deadlocks = 0;
    for (int i = 0; i < count; ++i) {
      const RandomSimulation simulation = MakeRandomSimulation(options, random_);
      if (!CanRun(simulation)) continue;
      SimulationOptions run;
      run.congestion = simulation.congestion;
      run.node_times = true;
      const absl::StatusOr<SimulationResult> result =
          Simulate(simulation.workload, simulation.network, simulation.system, run);
      AstraSimulatorOptions astra;
      ASSERT_OK_AND_ASSIGN(
          astra.binary, FindAstraBinary(FileSystem::Posix(), "", folder_, simulation.congestion));
      astra.work_folder = directory_.path();
      astra.timeout = absl::Seconds(20);
      astra.node_times = true;
      const absl::StatusOr<SimulationResult> expected = SimulateWithAstraSim(
          FileSystem::Posix(), simulation.workload, simulation.network, simulation.system, astra);
      ++runs;
      if (!result.ok() && options.custom) {
        // The algorithms' messages have tags of the workload's sends.
        EXPECT_THAT(result.status().message(), ::testing::HasSubstr("its algorithm receives")) << i;
        EXPECT_FALSE(expected.ok()) << i;
        ++deadlocks;
        continue;
      }
      ASSERT_OK(result) << i;
      // It sometimes crashes where it should not, e.g. on a message that takes no time at 0 ns.
      if (!expected.ok()) {
        ++crashes;
        continue;
      }
      EXPECT_EQ(result->finish_ns, expected->finish_ns) << i;
      for (size_t node = 0; node < result->nodes.size(); ++node) {
        EXPECT_EQ(result->nodes[node].issue_ns, expected->nodes[node].issue_ns) << i;
        EXPECT_EQ(result->nodes[node].finish_ns, expected->nodes[node].finish_ns) << i;
      }
    }
    EXPECT_GT(runs, count / 4);
    EXPECT_LE(crashes, runs / 50 + 1);
    EXPECT_LE(deadlocks, runs / 10);
  }

  std::string folder_;
  std::mt19937_64 random_{1};
  const TemporaryDirectory directory_;
};

TEST_F(RealAstraTest, GivesTheSameTimesOnRandomWorkloads) {
  CompareOnRandomSimulations(RandomSimulationOptions(), 300);
}

TEST_F(RealAstraTest, GivesTheSameTimesInSeveralDimensions) {
  RandomSimulationOptions options;
  options.max_dimensions = 3;
  options.max_npus = 24;
  CompareOnRandomSimulations(options, 300);
}

TEST_F(RealAstraTest, GivesTheSameTimesWithCustomAlgorithms) {
  RandomSimulationOptions options;
  options.custom = true;
  CompareOnRandomSimulations(options, 600);
  options.max_dimensions = 3;
  CompareOnRandomSimulations(options, 300);
}

TEST_F(RealAstraTest, GivesTheSameTimesWithRemoteMemory) {
  RandomSimulationOptions options;
  options.memory = true;
  CompareOnRandomSimulations(options, 200);
}

}  // namespace
}  // namespace meridian
