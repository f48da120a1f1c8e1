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

TEST(CorrectedTimingTest, MessagesOfOtherNetworksDoNotCount) {
  CommEdge a = Edge("a", CollectiveKind::kPointToPoint, 8), b = a;
  b.participants = {2, 3};
  EXPECT_DOUBLE_EQ(TraitsOf({a, b})[0].ranks, 4);
  EXPECT_DOUBLE_EQ(TraitsOf({a, b}, {0, 1})[0].ranks, 2);
  b.participants = {1, 0};
  EXPECT_FALSE(TraitsOf({a, b})[0].is_one_way);
  EXPECT_TRUE(TraitsOf({a, b}, {0, 1})[0].is_one_way);
}

// a and b go against each other, c goes alone.
TEST(CorrectedTimingTest, MessagesThatMeetAtARankShareItsPort) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{8, 2}};
  corrections.one_way = {{8, 1}};
  CorrectedTiming timing(
      std::make_unique<FixedTiming>(FixedTimes({{"a", 1e-6}, {"b", 1e-6}, {"c", 1e-6}})),
      corrections);
  CommEdge a = Edge("a", CollectiveKind::kPointToPoint, 8), b = a, c = a;
  b.id = "b";
  b.participants = {1, 0};
  c.id = "c";
  c.participants = {2, 3};
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch, timing.EstimateBatch({a, b, c}));
  EXPECT_DOUBLE_EQ(batch.seconds[0], 2e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 2e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[2], 1e-6);
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate alone, timing.EstimateEdge(a));
  EXPECT_DOUBLE_EQ(alone.seconds, 1e-6);
}

TEST(CorrectedTimingTest, WhatMovesNothingTakesNoTime) {
  CorrectedTiming timing = Corrected(FixedTimes({{"empty", 0}}));
  ASSERT_OK_AND_ASSIGN(const EdgeEstimate empty,
                       timing.EstimateEdge(Edge("empty", CollectiveKind::kAllReduce, 0)));
  EXPECT_EQ(empty.seconds, 0);
}

// Alone 1 us -> 6 us and 3 us -> 6 us. Each waits as long again for the other: the small one
// 1 us * 6 / 3, the large one 3 us * 6 / 1.
TEST(CorrectedTimingTest, InABatchWaitingLastsAsLongAsTheOthersDo) {
  CorrectedTiming timing =
      Corrected(FixedTimes({{"small", 1e-6}, {"large", 3e-6}}, /*batch_inflation=*/2));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing.EstimateBatch({Edge("small", CollectiveKind::kAllReduce, 8),
                                             Edge("large", CollectiveKind::kAllReduce, 5000)}));
  EXPECT_DOUBLE_EQ(batch.seconds[0], 8e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 24e-6);
  EXPECT_DOUBLE_EQ(batch.isolated[0].seconds, 6e-6);
  EXPECT_DOUBLE_EQ(batch.isolated[1].seconds, 6e-6);
  EXPECT_DOUBLE_EQ(batch.makespan_seconds, 24e-6);
  EXPECT_DOUBLE_EQ(batch.inflation, 4);
}

TEST(CorrectedTimingTest, NothingIsLostBesideHugeTimes) {
  // 3 ns beside three years: what the huge one waits for it takes twice as long, as the small one
  // does.
  constexpr double kHugeSeconds = 1e8;
  CorrectedTiming timing =
      Corrected(FixedTimes({{"huge", kHugeSeconds}, {"small", 3e-9}}, /*batch_inflation=*/2));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing.EstimateBatch({Edge("huge", CollectiveKind::kAllGather, 5000),
                                             Edge("small", CollectiveKind::kAllReduce, 5000)}));
  EXPECT_DOUBLE_EQ(batch.seconds[0], 3 * kHugeSeconds);
}

TEST(CorrectedTimingTest, WhatMovesNothingKeepsNobodyWaiting) {
  CorrectedTiming timing =
      Corrected(FixedTimes({{"empty", 0}, {"large", 3e-6}}, /*batch_inflation=*/2));
  ASSERT_OK_AND_ASSIGN(const BatchEstimate batch,
                       timing.EstimateBatch({Edge("empty", CollectiveKind::kAllReduce, 0),
                                             Edge("large", CollectiveKind::kAllReduce, 5000)}));
  EXPECT_EQ(batch.seconds[0], 0);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 9e-6);
}

// A timing whose edges are on networks of their own, two by two.
class TwoByTwo : public FixedTiming {
 public:
  using FixedTiming::FixedTiming;

  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) override {
    absl::StatusOr<BatchEstimate> batch = FixedTiming::EstimateBatch(edges);
    for (size_t i = 0; i < edges.size(); ++i)
      batch->networks.push_back(static_cast<int32_t>(i / 2));
    return batch;
  }
};

TEST(CorrectedTimingTest, OnlyEdgesOfTheSameNetworkKeepEachOtherWaiting) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{8, 2}};
  CorrectedTiming timing(
      std::make_unique<TwoByTwo>(
          FixedTimes({{"a", 1e-6}, {"b", 1e-6}, {"c", 1e-6}, {"d", 1e-6}}, /*batch_inflation=*/2)),
      corrections);
  ASSERT_OK_AND_ASSIGN(
      const BatchEstimate batch,
      timing.EstimateBatch(
          {Edge("a", CollectiveKind::kAllGather, 8), Edge("b", CollectiveKind::kAllReduce, 8),
           Edge("c", CollectiveKind::kAllGather, 8), Edge("d", CollectiveKind::kAllGather, 8)}));
  // Gathers keep the engine's time; one waits for a reduction that takes 2 us.
  EXPECT_DOUBLE_EQ(batch.seconds[0], 3e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[1], 3e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[2], 2e-6);
  EXPECT_DOUBLE_EQ(batch.seconds[3], 2e-6);
}

TEST(CorrectedTimingTest, ErrorsPassThrough) {
  FixedTimes times;
  times.edge_failure = times.batch_failure = absl::AbortedError("crashed");
  CorrectedTiming timing = Corrected(times);
  EXPECT_THAT(timing.EstimateEdge(Edge("a", CollectiveKind::kAllReduce, 1)),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(timing.EstimateBatch({}), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace meridian
