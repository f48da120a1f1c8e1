#include "xla_profiler/trace_export/nesting_lanes.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using End = NestingLanes::End;

TEST(NestingLanesTest, WhatNestsOrFollowsStaysInTheFirstLane) {
  NestingLanes lanes;
  std::vector<End> ends;
  EXPECT_THAT(lanes.Place(0, 100, &ends), Optional(0));
  EXPECT_THAT(lanes.Place(0, 100, &ends), Optional(0));
  EXPECT_THAT(lanes.Place(10, 40, &ends), Optional(0));
  EXPECT_THAT(ends, IsEmpty());
  // Touches its predecessor.
  EXPECT_THAT(lanes.Place(40, 100, &ends), Optional(0));
  EXPECT_THAT(ends, ElementsAre(End{0, 40}));
  ends.clear();
  EXPECT_THAT(lanes.Place(200, 300, &ends), Optional(0));
  EXPECT_THAT(ends, ElementsAre(End{0, 100}, End{0, 100}, End{0, 100}));
  ends.clear();
  lanes.Clear(&ends);
  EXPECT_THAT(ends, ElementsAre(End{0, 300}));
}

// As drawn in the header, with A = [0, 8], B = [2, 10], C = [3, 5], D = [12, 14].
TEST(NestingLanesTest, WhatOverlapsGetsALaneOfItsOwn) {
  NestingLanes lanes;
  std::vector<End> ends;
  EXPECT_THAT(lanes.Place(0, 8, &ends), Optional(0));
  EXPECT_THAT(lanes.Place(2, 10, &ends), Optional(1));
  EXPECT_THAT(lanes.Place(3, 5, &ends), Optional(0));
  EXPECT_THAT(ends, IsEmpty());
  EXPECT_THAT(lanes.Place(12, 14, &ends), Optional(0));
  EXPECT_THAT(ends, ElementsAre(End{0, 5}, End{0, 8}));
  ends.clear();
  lanes.Clear(&ends);
  EXPECT_THAT(ends, ElementsAre(End{0, 14}, End{1, 10}));
}

TEST(NestingLanesTest, AnInstantOpensNothing) {
  NestingLanes lanes;
  std::vector<End> ends;
  EXPECT_THAT(lanes.Place(0, 10, &ends), Optional(0));
  EXPECT_THAT(lanes.Place(5, 5, &ends), Optional(0));
  EXPECT_THAT(ends, IsEmpty());
  // The first event has ended by then.
  EXPECT_THAT(lanes.Place(10, 10, &ends), Optional(0));
  EXPECT_THAT(ends, ElementsAre(End{0, 10}));
  ends.clear();
  lanes.Clear(&ends);
  EXPECT_THAT(ends, IsEmpty());
}

TEST(NestingLanesTest, LanesAreLimited) {
  constexpr int64_t kLanes = NestingLanes::kMaxLanes;
  NestingLanes lanes;
  std::vector<End> ends;
  for (int64_t i = 0; i < kLanes; ++i) {
    EXPECT_THAT(lanes.Place(i, 1000 + i, &ends), Optional(i));
  }
  EXPECT_EQ(lanes.Place(kLanes, 1000 + kLanes, &ends), std::nullopt);
  EXPECT_THAT(ends, IsEmpty());
  // Where nothing is open any more there is room again.
  EXPECT_THAT(lanes.Place(5000, 5001, &ends), Optional(0));
}

// Whatever the events, each lane reads as parentheses in order of time.
TEST(NestingLanesTest, LanesNestForAnyEvents) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<int64_t, int64_t>> events;
    for (int i = 0; i < 50; ++i) {
      const auto start = static_cast<int64_t>(random() % 60);
      events.push_back({start, start + static_cast<int64_t>(random() % 12)});
    }
    std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    NestingLanes lanes;
    std::vector<std::vector<int64_t>> open(NestingLanes::kMaxLanes);
    std::vector<int64_t> now(NestingLanes::kMaxLanes, 0);
    std::vector<End> ends;
    const auto close = [&] {
      for (const End& end : ends) {
        ASSERT_FALSE(open[end.lane].empty());
        EXPECT_EQ(open[end.lane].back(), end.end_ps);
        open[end.lane].pop_back();
        EXPECT_GE(end.end_ps, now[end.lane]);
        now[end.lane] = end.end_ps;
      }
      ends.clear();
    };
    for (const auto& [start, end] : events) {
      const auto lane = lanes.Place(start, end, &ends);
      ASSERT_TRUE(lane.has_value());
      close();
      EXPECT_GE(start, now[*lane]);
      now[*lane] = start;
      if (!open[*lane].empty()) {
        EXPECT_LE(end, open[*lane].back());
      }
      if (start != end) open[*lane].push_back(end);
    }
    lanes.Clear(&ends);
    close();
    for (const auto& lane : open) EXPECT_THAT(lane, IsEmpty());
  }
}

}  // namespace
}  // namespace meridian
