#include "astra_bridge/sidecar/astra_sim_timing.h"

#include <memory>
#include <string>

#include "astra_bridge/sidecar/testing/script.h"
#include "astra_bridge/testing/fabrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

class AstraSimTimingTest : public ::testing::Test {
 protected:
  AstraSimTiming Timing(std::shared_ptr<TimingCache> cache = nullptr) {
    AstraSimulatorOptions options;
    options.binary = ScriptedProgram();
    options.work_folder = directory_.path();
    options.timeout = absl::Seconds(60);
    AstraBinary binary;
    binary.version = "binary 1";
    return AstraSimTiming(FileSystem::Posix(),
                          OneFabric(FabricOf({Dimension(BlockShape::kRing, 4)})), binary, options,
                          std::move(cache));
  }

  const TemporaryDirectory directory_;
  const CommEdge small_ = Edge(CollectiveKind::kAllReduce, 1000, {0, 1});
};

TEST_F(AstraSimTimingTest, AnEdgeTakesUntilTheLastRankIsDoneLessTheFirstNanosecond) {
  AstraSimTiming timing = Timing();
  EXPECT_EQ(timing.engine().name, "AstraSim analytical, congestion-aware");
  EXPECT_EQ(timing.engine().version, "binary 1");
  UseScript(directory_, FinishScript({101, 91, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, timing.EstimateEdge(small_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 100e-9);
}

TEST_F(AstraSimTimingTest, AFailedRunIsNotTriedAgain) {
  AstraSimTiming timing = Timing();
  UseScript(directory_, "signal 6\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(timing.EstimateEdge(small_),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("edge AR 1000 0-1: AstraSim")));
  }
  EXPECT_EQ(ScriptRuns(directory_), 1);
}

TEST_F(AstraSimTimingTest, WhatTheCacheKnowsIsNotRun) {
  const auto cache = std::make_shared<TimingCache>(FileSystem::Posix(), directory_.path());
  UseScript(directory_, FinishScript({101, 91, 1, 1}));
  AstraSimTiming first = Timing(cache);
  ASSERT_OK(first.EstimateEdge(small_));
  AstraSimTiming second = Timing(cache);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, second.EstimateEdge(small_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 100e-9);
  EXPECT_EQ(ScriptRuns(directory_), 1);
}

}  // namespace
}  // namespace meridian
