// The real AstraSim against its recorded times and the embedded engine: that the files written for
// it mean what they should, and that what it says is understood. Needs its two programs, as its own
// build makes them:
//
//   ./bazelw test --test_env=MERIDIAN_ASTRA_BIN=/path/to/astra-sim/build/astra_analytical/build/bin
//       //astra_bridge/sidecar:sidecar_test
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/golden_runs.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

class RealBinaryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("MERIDIAN_ASTRA_BIN");
    if (folder == nullptr) GTEST_SKIP() << "skipped: MERIDIAN_ASTRA_BIN names no AstraSim";
    folder_ = folder;
  }

  AstraSimulatorOptions Options(Congestion congestion) {
    AstraSimulatorOptions options;
    const absl::StatusOr<std::string> binary =
        FindAstraBinary(FileSystem::Posix(), "", folder_, congestion);
    EXPECT_OK(binary);
    options.binary = binary.value_or("");
    options.work_folder = directory_.path();
    options.timeout = absl::Minutes(1);
    return options;
  }

  // False for runs of a branch of AstraSim: with congestion the main branch has neither several
  // dimensions nor rings of two.
  static bool CanRun(const GoldenRun& run) {
    if (run.congestion == Congestion::kUnaware) return true;
    const NetworkDimension& first = run.network.dimensions[0];
    return run.network.dimensions.size() == 1 &&
           (first.shape != BlockShape::kRing || first.npus > 2);
  }

  std::string folder_;
  const TemporaryDirectory directory_;
};

TEST_F(RealBinaryTest, IsKnownByWhatItAnswers) {
  for (Congestion congestion : {Congestion::kAware, Congestion::kUnaware}) {
    EXPECT_OK(ProbeAstraBinary(FileSystem::Posix(), Options(congestion), congestion));
  }
}

TEST_F(RealBinaryTest, GivesItsRecordedTimesAgain) {
  // Every seventh takes a few seconds; all are the engine's business.
  constexpr size_t kStride = 7;
  const std::vector<GoldenRun> runs = SingleGoldenRuns();
  int compared = 0;
  for (size_t i = 0; i < runs.size(); i += kStride) {
    const GoldenRun& run = runs[i];
    if (!CanRun(run)) continue;
    const absl::StatusOr<SimulationResult> simulation = SimulateWithAstraSim(
        FileSystem::Posix(), run.workload, run.network, run.system, Options(run.congestion));
    ASSERT_OK(simulation) << run.id;
    for (size_t rank = 0; rank < run.finish_ns.size(); ++rank) {
      if (run.finish_ns[rank] < 0) continue;
      EXPECT_EQ(simulation->finish_ns[rank], run.finish_ns[rank]) << run.id << " " << rank;
    }
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST_F(RealBinaryTest, GivesItsRecordedNodeTimesAgain) {
  int compared = 0;
  for (const GoldenRun& run : ConcurrentGoldenRuns()) {
    if (!CanRun(run)) continue;
    AstraSimulatorOptions options = Options(run.congestion);
    options.node_times = true;
    const absl::StatusOr<SimulationResult> simulation =
        SimulateWithAstraSim(FileSystem::Posix(), run.workload, run.network, run.system, options);
    ASSERT_OK(simulation) << run.id;
    ASSERT_EQ(simulation->nodes.size(), run.nodes.size()) << run.id;
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      const NodeTime& node = simulation->nodes[i];
      EXPECT_EQ(node.rank, run.nodes[i].rank) << run.id;
      EXPECT_EQ(node.id, run.nodes[i].id) << run.id;
      EXPECT_EQ(node.issue_ns, run.nodes[i].issue_ns) << run.id;
      EXPECT_EQ(node.finish_ns, run.nodes[i].finish_ns) << run.id;
    }
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace meridian
