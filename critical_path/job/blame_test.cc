#include "critical_path/job/blame.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "critical_path/graph/critical_path.h"
#include "critical_path/job/rank_join.h"
#include "critical_path/testing/random_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr BoundBy kTransfer = BoundBy::kGpuCommunication;

Blame Find(JobGraph job) {
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  EXPECT_THAT(joined, IsOk());
  return FindBlame(joined->graph);
}

auto IsRow(int64_t step, int64_t rank, const char* op, int64_t time_ps, BoundBy bound_by,
           const char* waited_in, const char* after) {
  return AllOf(Field(&BlameRow::step, step), Field(&BlameRow::rank, rank), Field(&BlameRow::op, op),
               Field(&BlameRow::time_ps, time_ps), Field(&BlameRow::bound_by, bound_by),
               Field(&BlameRow::waited_in, waited_in), Field(&BlameRow::after, after));
}

// The example of the documentation: rank 1 sleeps for 180 us, launches for 20 us, and computes for
// 100 us as rank 0 did, which has waited since then.
TEST(BlameTest, WhatTheLastSpentMoreTimeInIsToBlame) {
  JobMaker maker(2);
  maker.Add(0, "mm", 0, 100'000'000);
  const auto first = maker.Add(0, "all-reduce", 100'000'000, 400'000'000, kTransfer);
  maker.Add(1, "launch", 180'000'000, 200'000'000, BoundBy::kCpu);
  maker.Add(1, "mm", 200'000'000, 300'000'000);
  const auto last = maker.Add(1, "all-reduce", 300'000'000, 390'000'000, kTransfer);
  maker.Meet("all-reduce", 3, {{0, first}, {1, last}});
  const Blame blame = Find(std::move(maker).Make());
  EXPECT_THAT(blame.rows,
              ElementsAre(IsRow(3, 1, "host_gap", 180'000'000, BoundBy::kHostGap, "all-reduce", ""),
                          IsRow(3, 1, "launch", 20'000'000, BoundBy::kCpu, "all-reduce", "")));
  ASSERT_EQ(blame.ranks.size(), 2);
  EXPECT_EQ(blame.ranks[0].rank, 0);
  EXPECT_EQ(blame.ranks[0].blamed_ps, 0);
  EXPECT_EQ(blame.ranks[0].waited_ps, 200'000'000);
  EXPECT_EQ(blame.ranks[1].blamed_ps, 200'000'000);
  EXPECT_EQ(blame.ranks[1].waited_ps, 0);
}

// Ranks 0 and 1 come at 10 and 40, rank 2 at 100: the others have waited for 75 on average. They
// had gaps of 25 on average and rank 2 one of 35, and it was in "slow" for 65 more than they.
TEST(BlameTest, OfSeveralWaitingRanksTheMeanCounts) {
  JobMaker maker(3);
  const auto a = maker.Add(0, "all-reduce", 10, 110, kTransfer);
  const auto b = maker.Add(1, "all-reduce", 40, 110, kTransfer);
  maker.Add(2, "slow", 35, 75);
  maker.Add(2, "slow", 75, 100);
  const auto c = maker.Add(2, "all-reduce", 100, 110, kTransfer);
  maker.Meet("all-reduce", std::nullopt, {{0, a}, {1, b}, {2, c}});
  const Blame blame = Find(std::move(maker).Make());
  // 75 in proportion to 65 and 10.
  ASSERT_EQ(blame.rows.size(), 2);
  EXPECT_EQ(blame.rows[0].op, "slow");
  EXPECT_EQ(blame.rows[0].time_ps, 65);
  EXPECT_EQ(blame.rows[0].step, std::nullopt);
  EXPECT_EQ(blame.rows[1].op, "host_gap");
  EXPECT_EQ(blame.rows[1].time_ps, 10);
}

// Rank 1 does as rank 0 did, but its transfer before ended later.
TEST(BlameTest, WhoeverWasNotSlowerIsNotToBlame) {
  JobMaker maker(2);
  const auto a = maker.Add(0, "x", 0, 50, kTransfer);
  const auto b = maker.Add(1, "x", 0, 90, kTransfer);
  maker.Add(0, "mm", 50, 60);
  maker.Add(1, "mm", 90, 100);
  const auto c = maker.Add(0, "y", 60, 120, kTransfer);
  const auto d = maker.Add(1, "y", 100, 120, kTransfer);
  maker.Meet("x", 0, {{0, a}, {1, b}});
  maker.Meet("y", 0, {{0, c}, {1, d}});
  const Blame blame = Find(std::move(maker).Make());
  EXPECT_THAT(blame.rows, IsEmpty());
  EXPECT_EQ(blame.ranks[0].waited_ps, 40);
}

// A pipeline of two stages: each works for 100 on the way there and for 200 on the way back, and
// waits while the other does. Only that rank 1 sleeps for 30 is anybody's fault.
TEST(BlameTest, WaitingForTheOrderOfTheWorkIsNobodysFault) {
  JobMaker maker(2);
  maker.Add(0, "forward", 0, 100);
  const auto send = maker.Add(0, "there", 100, 110, kTransfer);
  const auto receive = maker.Add(1, "there", 0, 110, kTransfer);
  maker.Add(1, "forward", 110, 210);
  maker.Add(1, "backward", 240, 440);
  const auto send_back = maker.Add(1, "back", 440, 450, kTransfer);
  const auto receive_back = maker.Add(0, "back", 110, 450, kTransfer);
  maker.Add(0, "backward", 450, 650);
  const auto last = maker.Add(0, "sum", 650, 660, kTransfer);
  const auto first = maker.Add(1, "sum", 450, 660, kTransfer);
  maker.Meet("there", 0, {{0, send}, {1, receive}});
  maker.Meet("back", 0, {{0, receive_back}, {1, send_back}});
  maker.Meet("sum", 0, {{0, last}, {1, first}});
  const Blame blame = Find(std::move(maker).Make());
  EXPECT_THAT(blame.rows,
              ElementsAre(IsRow(0, 1, "host_gap", 30, BoundBy::kHostGap, "back", "forward")));
}

// Rank 0 is late for rank 1, which is therefore late for rank 2. Rank 1 is not to blame for that.
TEST(BlameTest, WhoeverIsLateBecauseItWaitedIsNotToBlame) {
  JobMaker maker(3);
  maker.Add(0, "slow", 0, 1000);
  const auto send = maker.Add(0, "x", 1000, 1010, kTransfer);
  const auto receive = maker.Add(1, "x", 0, 1010, kTransfer);
  maker.Add(1, "work", 1010, 1030);
  const auto forward = maker.Add(1, "y", 1030, 1040, kTransfer);
  const auto end = maker.Add(2, "y", 0, 1040, kTransfer);
  maker.Meet("x", 0, {{0, send}, {1, receive}});
  maker.Meet("y", 0, {{1, forward}, {2, end}});
  const Blame blame = Find(std::move(maker).Make());
  ASSERT_EQ(blame.rows.size(), 2);
  EXPECT_EQ(blame.rows[0].rank, 0);
  EXPECT_EQ(blame.rows[0].op, "slow");
  EXPECT_EQ(blame.rows[0].time_ps, 1000);
  EXPECT_EQ(blame.rows[0].waited_in, "x");
  EXPECT_EQ(blame.rows[1].rank, 1);
  EXPECT_EQ(blame.rows[1].op, "work");
  EXPECT_EQ(blame.rows[1].time_ps, 20);
}

// The middle of three exchanges with both others in one kernel, for which it is late by a gap of
// 50.
TEST(BlameTest, WhatLeadsToTwoMeetingsAtOnceCountsOnce) {
  JobMaker maker(3);
  maker.Add(0, "mm", 0, 100);
  maker.Add(1, "mm", 50, 150);
  maker.Add(2, "mm", 0, 100);
  const auto a = maker.Add(0, "x", 100, 160, kTransfer);
  const auto b = maker.Add(1, "x", 150, 160, kTransfer);
  const auto c = maker.Add(2, "x", 100, 160, kTransfer);
  maker.Meet("0-1", 0, {{0, a}, {1, b}});
  maker.Meet("1-2", 0, {{1, b}, {2, c}});
  const Blame blame = Find(std::move(maker).Make());
  ASSERT_EQ(blame.rows.size(), 1);
  EXPECT_EQ(blame.rows[0].rank, 1);
  EXPECT_EQ(blame.rows[0].op, "host_gap");
  EXPECT_EQ(blame.rows[0].time_ps, 50);
}

// Ranks that never meet are no measure: 2 and 3 do for 1000 what rank 1 does for 400.
TEST(BlameTest, OnlyThoseWhoMeetAreCompared) {
  JobMaker maker(4);
  const auto a = maker.Add(0, "x", 0, 410, kTransfer);
  maker.Add(1, "mm", 0, 400);
  const auto b = maker.Add(1, "x", 400, 410, kTransfer);
  maker.Add(2, "mm", 0, 1000);
  maker.Add(3, "mm", 0, 1000);
  const auto c = maker.Add(2, "y", 1000, 1010, kTransfer);
  const auto d = maker.Add(3, "y", 1000, 1010, kTransfer);
  maker.Meet("x", 0, {{0, a}, {1, b}});
  maker.Meet("y", 0, {{2, c}, {3, d}});
  const Blame blame = Find(std::move(maker).Make());
  ASSERT_EQ(blame.rows.size(), 1);
  EXPECT_EQ(blame.rows[0].rank, 1);
  EXPECT_EQ(blame.rows[0].time_ps, 400);
}

TEST(BlameTest, ATransferThatEndsLaterOnOneRankIsNobodysFault) {
  JobMaker maker(2);
  const auto a = maker.Add(0, "x", 0, 50, kTransfer);
  const auto b = maker.Add(1, "x", 0, 90, kTransfer);
  const auto c = maker.Add(0, "y", 50, 120, kTransfer);
  const auto d = maker.Add(1, "y", 91, 120, kTransfer);
  maker.Meet("x", 0, {{0, a}, {1, b}});
  maker.Meet("y", 0, {{0, c}, {1, d}});
  const Blame blame = Find(std::move(maker).Make());
  ASSERT_EQ(blame.rows.size(), 1);
  EXPECT_EQ(blame.rows[0].op, "host_gap");
  EXPECT_EQ(blame.rows[0].time_ps, 1);
}

TEST(BlameTest, TheTimeBeforeARanksWindowIsNobodysFault) {
  JobMaker maker(2);
  const auto a = maker.Add(0, "x", 0, 100, kTransfer);
  maker.Add(1, "mm", 50, 60);
  const auto b = maker.Add(1, "x", 60, 100, kTransfer);
  maker.Meet("x", 0, {{0, a}, {1, b}});
  JobGraph job = std::move(maker).Make();
  // Rank 1's window begins with its first event.
  PathGraph& late = job.ranks[1].graph;
  late.window_start_ps = late.instants[0].time_ps = 50;
  late.edges[0].weight_ps = 0;
  const Blame blame = Find(std::move(job));
  ASSERT_EQ(blame.rows.size(), 1);
  EXPECT_EQ(blame.rows[0].op, "mm");
  EXPECT_EQ(blame.rows[0].time_ps, 10);
  // The rest of the 60 that rank 0 waited.
  EXPECT_THAT(blame.beginnings,
              ElementsAre(IsRow(0, 1, "before_step", 50, BoundBy::kBeforeStep, "x", "")));
}

// Periods may begin with the meeting, so that the work for the next one is in the one before.
TEST(BlameTest, WhatLeadsToAMeetingMayBeOfAnotherStep) {
  JobMaker maker(2);
  std::vector<GraphEventId> slow;
  for (int64_t i = 0; i < 2; ++i) {
    slow.push_back(maker.Add(1, "slow", 100 * i, 100 * i + 30));
    const auto a = maker.Add(0, "x", 100 * i, 100 * i + 40, kTransfer);
    const auto b = maker.Add(1, "x", 100 * i + 30, 100 * i + 40, kTransfer);
    maker.Meet("x", i, {{0, a}, {1, b}});
  }
  JobGraph job = std::move(maker).Make();
  job.ranks[1].graph.events[slow[1]].step = 0;
  const Blame blame = Find(std::move(job));
  ASSERT_EQ(blame.rows.size(), 2);
  EXPECT_EQ(blame.rows[1].step, 1);
  EXPECT_EQ(blame.rows[1].time_ps, 30);
}

TEST(BlameTest, RowsOfAStepAreSummedAndStepsAreLedByTheWorst) {
  JobMaker maker(2);
  for (int64_t i = 0; i < 3; ++i) {
    // Rank 1 is 30 late in all of them; the first two are one step.
    const int64_t at = 100 * i;
    maker.Add(1, "slow", at, at + 30);
    const auto a = maker.Add(0, "x", at, at + 40, kTransfer);
    const auto b = maker.Add(1, "x", at + 30, at + 40, kTransfer);
    maker.Meet("x", i / 2, {{0, a}, {1, b}});
  }
  const Blame blame = Find(std::move(maker).Make());
  ASSERT_EQ(blame.rows.size(), 2);
  EXPECT_EQ(blame.rows[0].step, 0);
  EXPECT_EQ(blame.rows[0].time_ps, 60);
  EXPECT_EQ(blame.rows[1].step, 1);
  EXPECT_EQ(blame.rows[1].time_ps, 30);
}

TEST(BlameTest, OneRankBlamesNobody) {
  JobMaker maker(1);
  maker.Add(0, "a", 0, 10);
  const Blame blame = Find(std::move(maker).Make());
  EXPECT_THAT(blame.rows, IsEmpty());
  EXPECT_THAT(blame.ranks, IsEmpty());
}

// Returns the sum over all meetings of the time that those who were not last waited on average.
double MeanWaitsPs(const PathGraph& graph) {
  std::map<InstantId, std::vector<int64_t>> arrivals_ps;
  for (const GraphMeeting& meeting : graph.meetings) arrivals_ps[meeting.instant];
  for (const GraphEdge& edge : graph.edges) {
    const auto meeting = arrivals_ps.find(edge.to);
    if (meeting != arrivals_ps.end()) meeting->second.push_back(graph.Time(edge.from));
  }
  double sum_ps = 0;
  for (const auto& [instant, times_ps] : arrivals_ps) {
    double waits_ps = 0;
    for (const int64_t time_ps : times_ps) {
      waits_ps += static_cast<double>(graph.Time(instant) - time_ps);
    }
    if (times_ps.size() > 1) sum_ps += waits_ps / static_cast<double>(times_ps.size() - 1);
  }
  return sum_ps;
}

TEST(BlameTest, NoWaitIsBlamedTwice) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    const absl::StatusOr<JoinedGraph> joined = JoinRanks(RandomJob(random));
    ASSERT_THAT(joined, IsOk());
    const Blame blame = FindBlame(joined->graph);
    int64_t sum_ps = 0, ranks_ps = 0;
    for (const BlameRow& row : blame.rows) {
      EXPECT_GT(row.time_ps, 0);
      sum_ps += row.time_ps;
    }
    for (const RankBlame& rank : blame.ranks) ranks_ps += rank.blamed_ps;
    EXPECT_EQ(ranks_ps, sum_ps);
    EXPECT_LE(static_cast<double>(sum_ps), MeanWaitsPs(joined->graph) + 1);
  }
}

}  // namespace
}  // namespace meridian
