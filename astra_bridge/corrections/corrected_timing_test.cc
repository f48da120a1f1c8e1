#include "astra_bridge/corrections/corrected_timing.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

CommEdge Edge(const char* id, CollectiveKind kind, int64_t bytes) {
  CommEdge edge;
  edge.id = id;
  edge.kind = kind;
  edge.bytes = bytes;
  edge.participants = {0, 1};
  return edge;
}

// All-reduces up to 1000 bytes take six times as long as the engine says, from 5000 on twice.
CorrectedTiming Corrected(FixedTimes times) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{1000, 6}, {5000, 2}};
  return CorrectedTiming(std::make_unique<FixedTiming>(std::move(times)), corrections);
}

TEST(CorrectedTimingTest, ByKindAndBytes) {
  CorrectedTiming timing =
      Corrected(FixedTimes({{"small", 1e-6}, {"large", 3e-6}, {"gather", 1e-6}}));
  EXPECT_EQ(timing.engine().name, "fixed");
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate small,
                       timing.EstimateEdge(Edge("small", CollectiveKind::kAllReduce, 1000)));
  EXPECT_DOUBLE_EQ(small.seconds, 6e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate large,
                       timing.EstimateEdge(Edge("large", CollectiveKind::kAllReduce, 5000)));
  EXPECT_DOUBLE_EQ(large.seconds, 6e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate gather,
                       timing.EstimateEdge(Edge("gather", CollectiveKind::kAllGather, 1000)));
  EXPECT_DOUBLE_EQ(gather.seconds, 1e-6);
}

// Ratios are 2 for groups of two in a run of four, and 6 for all of it.
TEST(CorrectedTimingTest, ByTheRanksOfTheGroup) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{8, 2, 2}, {8, 6, 4}};
  CorrectedTiming timing(std::make_unique<FixedTiming>(FixedTimes({{"a", 1e-6}, {"b", 1e-6}})),
                         corrections);
  CommEdge a = Edge("a", CollectiveKind::kAllReduce, 8),
           b = Edge("b", CollectiveKind::kAllReduce, 8);
  a.participants = {0, 1};
  b.participants = {0, 1, 2, 3};
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate pair, timing.EstimateEdge(a));
  EXPECT_DOUBLE_EQ(pair.seconds, 2e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate all, timing.EstimateEdge(b));
  EXPECT_DOUBLE_EQ(all.seconds, 6e-6);
}

TEST(CorrectedTimingTest, AMessageAloneGoesOneWay) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{8, 2}};
  corrections.one_way = {{8, 1}};
  CorrectedTiming timing(std::make_unique<FixedTiming>(FixedTimes({{"a", 1e-6}})), corrections);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate alone,
                       timing.EstimateEdge(Edge("a", CollectiveKind::kPointToPoint, 8)));
  EXPECT_DOUBLE_EQ(alone.seconds, 1e-6);
}

TEST(CorrectedTimingTest, WhatMovesNothingTakesNoTime) {
  CorrectedTiming timing = Corrected(FixedTimes({{"empty", 0}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate empty,
                       timing.EstimateEdge(Edge("empty", CollectiveKind::kAllReduce, 0)));
  EXPECT_EQ(empty.seconds, 0);
}

TEST(CorrectedTimingTest, ErrorsPassThrough) {
  FixedTimes times;
  times.edge_failure = absl::AbortedError("crashed");
  CorrectedTiming timing = Corrected(times);
  EXPECT_THAT(timing.EstimateEdge(Edge("a", CollectiveKind::kAllReduce, 1)),
              StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace meridian
