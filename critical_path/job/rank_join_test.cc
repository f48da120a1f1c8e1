#include "critical_path/job/rank_join.h"

#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/testing/random_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// Rank 0 computes for 100 us and waits; rank 1 comes 200 us later.
JobGraph LateRank() {
  JobMaker maker(2);
  maker.Add(0, "a", 0, 100);
  const GraphEventId first = maker.Add(0, "all-reduce", 100, 400, BoundBy::kGpuCommunication);
  maker.Add(1, "b", 180, 300);
  const GraphEventId last = maker.Add(1, "all-reduce", 300, 390, BoundBy::kGpuCommunication);
  maker.Meet("all-reduce", 3, {{0, first}, {1, last}});
  return std::move(maker).Make();
}

// The path as "rank name us", one for each edge with time.
std::vector<std::string> Describe(const PathGraph& graph, const CriticalPath& path) {
  std::vector<std::string> out;
  for (const EdgeId id : path.edges) {
    const GraphEdge& edge = graph.edges[id];
    if (edge.weight_ps == 0) continue;
    const std::string name = edge.event == kNoEvent
                                 ? "-"
                                 : absl::StrCat(graph.lanes[graph.events[edge.event].lane].rank,
                                                " ", std::string(graph.EventName(edge.event)));
    out.push_back(
        absl::StrCat(name, " ", std::string(BoundByName(edge.bound_by)), " ", edge.weight_ps));
  }
  return out;
}

TEST(RankJoinTest, ThePathGoesWhereTheOthersWereWaitedFor) {
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(LateRank());
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->against_time, 0);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, 400);
  EXPECT_THAT(Describe(joined->graph, *path),
              ElementsAre("- host_gap 180", "1 b gpu_compute_bound 120",
                          "0 all-reduce gpu_communication_bound 100"));
  ASSERT_EQ(joined->graph.meetings.size(), 1);
  EXPECT_EQ(joined->graph.meetings[0].step, 3);
  EXPECT_EQ(joined->graph.instants[joined->graph.meetings[0].instant].time_ps, 300);
}

TEST(RankJoinTest, OfOneRankAloneTheWaitIsToldApart) {
  const absl::StatusOr<JoinedGraph> early = ShowWaits(LateRank(), 0);
  ASSERT_THAT(early, IsOk());
  absl::StatusOr<CriticalPath> path = FindLongestPath(early->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_THAT(Describe(early->graph, *path),
              ElementsAre("0 a gpu_compute_bound 100", "0 all-reduce wait_for_other_ranks 200",
                          "0 all-reduce gpu_communication_bound 100"));
  const absl::StatusOr<JoinedGraph> late = ShowWaits(LateRank(), 1);
  ASSERT_THAT(late, IsOk());
  path = FindLongestPath(late->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_THAT(Describe(late->graph, *path),
              ElementsAre("- host_gap 180", "1 b gpu_compute_bound 120",
                          "1 all-reduce gpu_communication_bound 90"));
}

TEST(RankJoinTest, OnlyTargetsWaitForTheirSources) {
  // Rank 1 is the root of a broadcast: rank 0 waits for it, and it waits for nobody.
  JobGraph job = LateRank();
  job.meetings[0].departures.resize(1);
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(Describe(joined->graph, *path).back(), "0 all-reduce gpu_communication_bound 100");
  // Rank 1's end has only its own reasons.
  int64_t into_departures = 0;
  for (const GraphEdge& edge : joined->graph.edges) {
    into_departures += edge.from == joined->graph.meetings[0].instant;
  }
  EXPECT_EQ(into_departures, 1);
}

TEST(RankJoinTest, ClocksThatDisagreeGiveNoEdgesAgainstTime) {
  JobMaker maker(2);
  const GraphEventId early = maker.Add(0, "all-reduce", 0, 50, BoundBy::kGpuCommunication);
  const GraphEventId late = maker.Add(1, "all-reduce", 60, 90, BoundBy::kGpuCommunication);
  maker.Meet("all-reduce", std::nullopt, {{0, early}, {1, late}});
  JobGraph job = std::move(maker).Make();
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->against_time, 1);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, 90);
}

TEST(RankJoinTest, TimesCountFromTheEarliestBase) {
  JobGraph job = LateRank();
  job.ranks[0].graph.base_ns = 7;
  job.ranks[1].graph.base_ns = 5;
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(joined->graph.base_ns, 5);
  // Rank 0's window is 2 ns later now.
  EXPECT_EQ(joined->graph.window_start_ps, 0);
  EXPECT_EQ(joined->graph.window_end_ps, 2400);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_THAT(Describe(joined->graph, *path),
              ElementsAre("- host_gap 2000", "0 a gpu_compute_bound 100",
                          "0 all-reduce gpu_communication_bound 300"));
}

TEST(RankJoinTest, LatenessIsARanksOwnWhenTheWindowsAreChosen) {
  JobGraph job = LateRank();
  job.ranks[0].graph.base_ns = 2;
  job.windows_are_chosen = true;
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(std::move(job));
  ASSERT_THAT(joined, IsOk());
  const absl::StatusOr<CriticalPath> path = FindLongestPath(joined->graph);
  ASSERT_THAT(path, IsOk());
  EXPECT_THAT(Describe(joined->graph, *path),
              ElementsAre("0 before_step before_step 2000", "0 a gpu_compute_bound 100",
                          "0 all-reduce gpu_communication_bound 300"));
}

TEST(RankJoinTest, RanksOfDifferentCenturiesAreRefused) {
  JobGraph job = LateRank();
  job.ranks[0].graph.base_ns = std::numeric_limits<int64_t>::min();
  job.ranks[1].graph.base_ns = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(JoinRanks(std::move(job)).status(), StatusIs(absl::StatusCode::kOutOfRange));
}

// Laws that hold whatever ranks do.
TEST(RankJoinTest, ThePathIsAsLongAsTheWindowAndFullyBooked) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(i);
    const auto seed = random();
    std::mt19937 first(seed), second(seed);
    const absl::StatusOr<JoinedGraph> joined = JoinRanks(RandomJob(first));
    ASSERT_THAT(joined, IsOk());
    const PathGraph& graph = joined->graph;
    const absl::StatusOr<CriticalPath> path = FindLongestPath(graph);
    ASSERT_THAT(path, IsOk());
    EXPECT_EQ(path->length_ps, graph.window_end_ps - graph.window_start_ps);
    const PathBreakdown breakdown = BreakDown(graph, *path);
    EXPECT_EQ(std::accumulate(breakdown.time_ps.begin(), breakdown.time_ps.end(), int64_t{0}),
              path->length_ps);
    EXPECT_EQ(breakdown.Of(BoundBy::kOtherRanks), 0);
    for (const GraphEdge& edge : graph.edges) {
      EXPECT_LE(edge.weight_ps,
                graph.instants[edge.to].time_ps - graph.instants[edge.from].time_ps);
    }

    JobGraph job = RandomJob(second);
    const size_t rank = i % job.ranks.size();
    const int64_t window_ps = job.ranks[rank].graph.window_end_ps;
    const absl::StatusOr<JoinedGraph> alone = ShowWaits(std::move(job), rank);
    ASSERT_THAT(alone, IsOk());
    const absl::StatusOr<CriticalPath> own = FindLongestPath(alone->graph);
    ASSERT_THAT(own, IsOk());
    EXPECT_EQ(own->length_ps, window_ps);
  }
}

}  // namespace
}  // namespace meridian
