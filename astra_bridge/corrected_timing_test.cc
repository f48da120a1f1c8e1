#include "astra_bridge/corrected_timing.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/util/testing/status_matchers.h"

namespace meridian {
namespace {

CommEdge Edge(const char* id, CommKind kind, int64_t bytes) {
  CommEdge edge;
  edge.id = id;
  edge.kind = kind;
  edge.bytes = bytes;
  edge.participants = {0, 1};
  return edge;
}

// All-reduces up to 1000 bytes need 5 us more, larger ones take twice as long.
CorrectedTiming Corrected(FixedTimes times) {
  Corrections corrections;
  corrections.segments[static_cast<size_t>(CommKind::kAllReduce)] = {{1000, 5000, 1}, {}};
  corrections.segments[static_cast<size_t>(CommKind::kAllReduce)][1].efficiency = 0.5;
  return CorrectedTiming(std::make_unique<FixedTiming>(std::move(times)), corrections);
}

TEST(CorrectedTimingTest, ByKindAndBytes) {
  CorrectedTiming timing =
      Corrected(FixedTimes({{"small", 1e-6}, {"large", 3e-6}, {"gather", 1e-6}}));
  EXPECT_EQ(timing.engine().name, "fixed");
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate small,
                       timing.EstimateEdge(Edge("small", CommKind::kAllReduce, 1000)));
  EXPECT_DOUBLE_EQ(small.seconds, 6e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate large,
                       timing.EstimateEdge(Edge("large", CommKind::kAllReduce, 1001)));
  EXPECT_DOUBLE_EQ(large.seconds, 6e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate gather,
                       timing.EstimateEdge(Edge("gather", CommKind::kAllGather, 1000)));
  EXPECT_DOUBLE_EQ(gather.seconds, 1e-6);
}

TEST(CorrectedTimingTest, WhatMovesNothingNeedsNoOverhead) {
  CorrectedTiming timing = Corrected(FixedTimes({{"empty", 0}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate empty,
                       timing.EstimateEdge(Edge("empty", CommKind::kAllReduce, 0)));
  EXPECT_EQ(empty.seconds, 0);
}

TEST(CorrectedTimingTest, InABatchTheSharedTimeIsCorrected) {
  CorrectedTiming timing =
      Corrected(FixedTimes({{"small", 1e-6}, {"large", 3e-6}}, /*batch_inflation=*/2));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing.EstimateBatch({Edge("small", CommKind::kAllReduce, 8),
                                             Edge("large", CommKind::kAllReduce, 5000)}));
  EXPECT_DOUBLE_EQ(batch.seconds[0], 7e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 12e-6);
  EXPECT_DOUBLE_EQ(batch.isolated[1].seconds, 6e-6);
  EXPECT_DOUBLE_EQ(batch.makespan_seconds, 12e-6);
  EXPECT_DOUBLE_EQ(batch.inflation, 2);
}

TEST(CorrectedTimingTest, ErrorsPassThrough) {
  FixedTimes times;
  times.edge_failure = times.batch_failure = absl::AbortedError("crashed");
  CorrectedTiming timing = Corrected(times);
  EXPECT_THAT(timing.EstimateEdge(Edge("a", CommKind::kAllReduce, 1)),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(timing.EstimateBatch({}), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace meridian
