#include "astra_bridge/timing/network_timing.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

BatchEstimate Batch(std::vector<double> seconds, const std::vector<double>& isolated) {
  BatchEstimate batch;
  batch.seconds = std::move(seconds);
  for (double one : isolated) {
    batch.isolated.emplace_back();
    batch.isolated.back().seconds = one;
  }
  SummariseBatch(&batch);
  return batch;
}

TEST(NetworkTimingTest, InflationIsMakespanOverTheLongestAlone) {
  const BatchEstimate batch = Batch({3, 6, 1}, {3, 4, 1});
  EXPECT_EQ(batch.makespan_seconds, 6);
  EXPECT_EQ(batch.inflation, 1.5);
}

TEST(NetworkTimingTest, InflationOverTheSumSaysWhatRunningAtOnceGains) {
  EXPECT_EQ(InflationOverSum(Batch({3, 6, 1}, {3, 4, 1})), 0.75);
  EXPECT_EQ(InflationOverSum(Batch({8, 8}, {4, 4})), 1);
}

TEST(NetworkTimingTest, NothingToDoIsNotInflated) {
  EXPECT_EQ(InflationOverSum(Batch({0}, {0})), 1);
  EXPECT_EQ(Batch({}, {}).inflation, 1);
  EXPECT_EQ(Batch({0}, {0}).inflation, 1);
  EXPECT_EQ(Batch({0}, {0}).makespan_seconds, 0);
}

TEST(NetworkTimingTest, AReasonMakesAFallback) {
  EdgeEstimate edge;
  EXPECT_FALSE(edge.is_fallback());
  edge.fallback_reason = "crashed";
  EXPECT_TRUE(edge.is_fallback());
}

}  // namespace
}  // namespace meridian
