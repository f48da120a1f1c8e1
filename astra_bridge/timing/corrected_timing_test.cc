#include "astra_bridge/timing/network_timing.h"

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
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

// Seconds by edge id.
NetworkTiming Fixed(std::map<std::string, double> seconds) {
  return [seconds = std::move(seconds)](const CommEdge& edge) { return seconds.at(edge.id); };
}

// All-reduces up to 1000 bytes take six times as long as the engine says, from 5000 on twice.
NetworkTiming Corrected(NetworkTiming timing) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{1000, 6}, {5000, 2}};
  return CorrectedTiming(std::move(timing), corrections);
}

TEST(CorrectedTimingTest, ByKindAndBytes) {
  const NetworkTiming timing =
      Corrected(Fixed({{"small", 1e-6}, {"large", 3e-6}, {"gather", 1e-6}}));
  ASSERT_OK_AND_ASSIGN(const double small, timing(Edge("small", CollectiveKind::kAllReduce, 1000)));
  EXPECT_DOUBLE_EQ(small, 6e-6);
  ASSERT_OK_AND_ASSIGN(const double large, timing(Edge("large", CollectiveKind::kAllReduce, 5000)));
  EXPECT_DOUBLE_EQ(large, 6e-6);
  ASSERT_OK_AND_ASSIGN(const double gather,
                       timing(Edge("gather", CollectiveKind::kAllGather, 1000)));
  EXPECT_DOUBLE_EQ(gather, 1e-6);
}

// Ratios are 2 for groups of two in a run of four, and 6 for all of it.
TEST(CorrectedTimingTest, ByTheRanksOfTheGroup) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllReduce)] = {{8, 2, 2}, {8, 6, 4}};
  const NetworkTiming timing = CorrectedTiming(Fixed({{"a", 1e-6}, {"b", 1e-6}}), corrections);
  CommEdge a = Edge("a", CollectiveKind::kAllReduce, 8),
           b = Edge("b", CollectiveKind::kAllReduce, 8);
  a.participants = {0, 1};
  b.participants = {0, 1, 2, 3};
  ASSERT_OK_AND_ASSIGN(const double pair, timing(a));
  EXPECT_DOUBLE_EQ(pair, 2e-6);
  ASSERT_OK_AND_ASSIGN(const double all, timing(b));
  EXPECT_DOUBLE_EQ(all, 6e-6);
}

TEST(CorrectedTimingTest, AMessageAloneGoesOneWay) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{8, 2}};
  corrections.one_way = {{8, 1}};
  const NetworkTiming timing = CorrectedTiming(Fixed({{"a", 1e-6}}), corrections);
  ASSERT_OK_AND_ASSIGN(const double alone, timing(Edge("a", CollectiveKind::kPointToPoint, 8)));
  EXPECT_DOUBLE_EQ(alone, 1e-6);
}

TEST(CorrectedTimingTest, WhatMovesNothingTakesNoTime) {
  const NetworkTiming timing = Corrected(Fixed({{"empty", 0}}));
  ASSERT_OK_AND_ASSIGN(const double empty, timing(Edge("empty", CollectiveKind::kAllReduce, 0)));
  EXPECT_EQ(empty, 0);
}

TEST(CorrectedTimingTest, ErrorsPassThrough) {
  const NetworkTiming timing =
      Corrected([](const CommEdge&) { return absl::AbortedError("crashed"); });
  EXPECT_THAT(timing(Edge("a", CollectiveKind::kAllReduce, 1)),
              StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace meridian
