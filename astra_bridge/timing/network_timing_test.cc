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
  FallbackTiming timing = Fallback(FixedTimes({{"a", 1}}), FixedTimes({{"a", 7}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate edge, timing.EstimateEdge(Edge("a")));
  EXPECT_EQ(edge.seconds, 1);
  EXPECT_FALSE(edge.is_fallback());
}

TEST(FallbackTimingTest, AnEdgeIsAnsweredByTheSubstituteWithTheReason) {
  FixedTimes failing;
  failing.edge_failure = absl::AbortedError("crashed");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 7}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate edge, timing.EstimateEdge(Edge("a")));
  EXPECT_EQ(edge.seconds, 7);
  EXPECT_EQ(edge.fallback_reason, "crashed");
}

TEST(FallbackTimingTest, OtherErrorsReachTheUser) {
  FixedTimes failing;
  failing.edge_failure = absl::InvalidArgumentError("no such device");
  FallbackTiming timing = Fallback(failing, FixedTimes({{"a", 7}}));
  EXPECT_THAT(timing.EstimateEdge(Edge("a")),
              StatusIs(absl::StatusCode::kInvalidArgument, "no such device"));
}

}  // namespace
}  // namespace meridian
