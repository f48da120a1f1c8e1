#include "astra_bridge/timing/network_timing.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

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

TEST(NetworkTimingTest, InflationOverTheSumSaysWhatRunningAtOnceGains) {}

TEST(NetworkTimingTest, NothingToDoIsNotInflated) {
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

CommEdge Edge(const char* id) {
  CommEdge edge;
  edge.id = id;
  return edge;
}

FallbackTiming Fallback(FixedTimes times, FixedTimes substitute) {
  return FallbackTiming(std::make_unique<FixedTiming>(std::move(times)),
                        std::make_unique<FixedTiming>(std::move(substitute)));
}

TEST(FallbackTimingTest, StepsInOnlyForFailuresOfTheEngine) {
  for (const absl::Status& failure :
       {absl::AbortedError("crashed"), absl::DeadlineExceededError("too long"),
        absl::UnimplementedError("cannot")}) {
    EXPECT_TRUE(MayFallBack(failure)) << failure;
  }
  for (const absl::Status& failure :
       {absl::InvalidArgumentError("bad"), absl::UnavailableError("missing"),
        absl::CancelledError("interrupted"), absl::ResourceExhaustedError("disk full")}) {
    EXPECT_FALSE(MayFallBack(failure)) << failure;
  }
}

TEST(FallbackTimingTest, AGoodAnswerIsPassedOn) {
  FallbackTiming timing =
      Fallback(FixedTimes({{"a", 1}}, /*batch_inflation=*/3), FixedTimes({{"a", 7}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate edge, timing.EstimateEdge(Edge("a")));
  EXPECT_EQ(edge.seconds, 1);
  EXPECT_FALSE(edge.is_fallback());
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({Edge("a")}));
  EXPECT_EQ(batch.makespan_seconds, 3);
  EXPECT_FALSE(batch.is_fallback());
}

TEST(FallbackTimingTest, AnEdgeIsAnsweredByTheSubstituteWithTheReason) {
  FixedTimes failing;
  failing.edge_failure = absl::AbortedError("crashed");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 7}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate edge, timing.EstimateEdge(Edge("a")));
  EXPECT_EQ(edge.seconds, 7);
  EXPECT_EQ(edge.fallback_reason, "crashed");
}

TEST(FallbackTimingTest, ABatchIsSerialised) {
  // The run of the batch timed out; edges alone had worked.
  FixedTimes failing({{"a", 1}, {"b", 3}, {"c", 2}});
  failing.batch_failure = absl::DeadlineExceededError("too long");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 7}, {"b", 7}, {"c", 7}}));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing.EstimateBatch({Edge("a"), Edge("b"), Edge("c")}));
  EXPECT_EQ(batch.rule, BatchRule::kSerialised);
  EXPECT_EQ(batch.fallback_reason, "too long");
  EXPECT_EQ(batch.makespan_seconds, 6);
  EXPECT_EQ(batch.inflation, 2);
  EXPECT_EQ(batch.seconds, (std::vector<double>{2, 6, 4}));
  EXPECT_FALSE(batch.isolated[0].is_fallback());
}

TEST(FallbackTimingTest, ABatchIsSerialisedFromTheSubstituteWhenNothingWorks) {
  FixedTimes failing;
  failing.edge_failure = failing.batch_failure = absl::AbortedError("crashed");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 4}, {"b", 4}}));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({Edge("a"), Edge("b")}));
  EXPECT_EQ(batch.makespan_seconds, 8);
  EXPECT_TRUE(batch.isolated[1].is_fallback());
}

TEST(FallbackTimingTest, OtherErrorsReachTheUser) {
  FixedTimes failing;
  failing.edge_failure = failing.batch_failure = absl::InvalidArgumentError("no such device");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 7}}));
  EXPECT_THAT(timing.EstimateEdge(Edge("a")),
              StatusIs(absl::StatusCode::kInvalidArgument, "no such device"));
  EXPECT_THAT(timing.EstimateBatch({Edge("a")}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace meridian
