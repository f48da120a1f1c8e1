#include "astra_bridge/sidecar/astra_sim_timing.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

  // Ranks that finish at these times in the n-th run.
  static std::string Run(int n, const std::vector<int64_t>& finish_ns) {
    return absl::StrCat("run ", n, "\n", FinishScript(finish_ns));
  }

  const TemporaryDirectory directory_;
  const CommEdge small_ = Edge(CollectiveKind::kAllReduce, 1000, {0, 1});
  const CommEdge large_ = Edge(CollectiveKind::kAllReduce, 9000, {1, 2});
};

TEST_F(AstraSimTimingTest, AnEdgeTakesUntilTheLastRankIsDoneLessTheFirstNanosecond) {
  AstraSimTiming timing = Timing();
  EXPECT_EQ(timing.engine().name, "AstraSim analytical, congestion-aware");
  EXPECT_EQ(timing.engine().version, "binary 1");
  UseScript(directory_, FinishScript({101, 91, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate estimate, timing.EstimateEdge(small_));
  EXPECT_DOUBLE_EQ(estimate.seconds, 100e-9);
}

TEST_F(AstraSimTimingTest, ABatchIsStretchedByItsMakespan) {
  AstraSimTiming timing = Timing();
  UseScript(directory_,
            Run(1, {101, 101, 1, 1}) + Run(2, {1, 401, 401, 1}) + Run(3, {101, 501, 501, 1}));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({large_, small_}));
  EXPECT_EQ(ScriptRuns(directory_), 3);
  EXPECT_EQ(batch.rule, BatchRule::kMakespanInflation);
  EXPECT_DOUBLE_EQ(batch.isolated[0].seconds, 400e-9);
  EXPECT_DOUBLE_EQ(batch.makespan_seconds, 500e-9);
  EXPECT_DOUBLE_EQ(batch.inflation, 1.25);
  EXPECT_DOUBLE_EQ(batch.seconds[0], 500e-9);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 125e-9);
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

TEST_F(AstraSimTimingTest, DifferentWaysToDoOneCollectiveAreNoBatch) {
  AstraSimTiming timing = Timing();
  CommEdge direct = large_;
  direct.hint = AlgorithmHint::kDirect;
  UseScript(directory_, FinishScript({101, 101, 101, 1}));
  EXPECT_THAT(timing.EstimateBatch({small_, direct}), StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace meridian
