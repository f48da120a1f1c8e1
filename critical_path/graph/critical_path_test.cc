#include "critical_path/graph/critical_path.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Edges = std::vector<std::tuple<InstantId, InstantId, int64_t>>;

// Instant 2k is the start of event k, instant 2k + 1 its end.
PathGraph Graph(const Edges& edges) {
  PathGraph graph;
  for (const auto& [from, to, weight_ps] : edges) {
    graph.edges.push_back({from, to, weight_ps, kNoEvent, EdgeType::kOperator, BoundBy::kCpu});
    while (graph.instants.size() <= std::max(from, to)) {
      const InstantId instant = static_cast<InstantId>(graph.instants.size());
      graph.instants.push_back({0, instant / 2, instant % 2 == 0});
      if (instant % 2 == 0) {
        GraphEvent event;
        event.name = graph.names.Intern(std::string(1, static_cast<char>('a' + instant / 2)));
        event.position = 10 * (instant / 2);
        graph.events.push_back(event);
      }
    }
  }
  return graph;
}

std::vector<InstantId> Path(const PathGraph& graph) {
  const absl::StatusOr<CriticalPath> path = FindLongestPath(graph);
  EXPECT_OK(path);
  return PathInstants(graph, *path);
}

TEST(LongestPathTest, FollowsTheHeavierBranch) {
  const PathGraph graph = Graph({{0, 1, 5}, {0, 2, 1}, {2, 3, 3}, {1, 4, 0}, {3, 4, 2}});
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
  EXPECT_EQ(path.length_ps, 6);
  EXPECT_THAT(path.edges, ElementsAre(1, 2, 4));
  EXPECT_THAT(PathInstants(graph, path), ElementsAre(0, 2, 3, 4));
}

TEST(LongestPathTest, SpeedingOneEdgeUpMovesThePath) {
  PathGraph graph = Graph({{0, 1, 5}, {0, 2, 4}, {1, 3, 1}, {2, 3, 1}});
  EXPECT_THAT(Path(graph), ElementsAre(0, 1, 3));
  graph.edges[0].weight_ps = 3;
  EXPECT_THAT(Path(graph), ElementsAre(0, 2, 3));
}

TEST(LongestPathTest, OfEqualPredecessorsTheFirstEdgeCounts) {
  EXPECT_THAT(Path(Graph({{0, 2, 1}, {1, 2, 1}})), ElementsAre(0, 2));
  EXPECT_THAT(Path(Graph({{1, 2, 1}, {0, 2, 1}})), ElementsAre(1, 2));
}

TEST(LongestPathTest, OfEqualEndsTheFirstInTopologicalOrderCounts) {
  // Sources in the order of their edges, 4 and 0; then what they complete: 5 and 1.
  EXPECT_THAT(Path(Graph({{4, 5, 2}, {0, 1, 2}})), ElementsAre(4, 5));
  // 1 is complete one generation before 3.
  EXPECT_THAT(Path(Graph({{0, 2, 1}, {2, 3, 1}, {0, 1, 2}})), ElementsAre(0, 1));
}

TEST(LongestPathTest, EndsWhereItMust) {
  PathGraph graph = Graph({{0, 1, 5}, {0, 2, 1}});
  graph.end_instant = 2;
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
  EXPECT_EQ(path.length_ps, 1);
  EXPECT_THAT(PathInstants(graph, path), ElementsAre(0, 2));
}

TEST(LongestPathTest, APathWithoutTimeHasAnEdge) {
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(Graph({{0, 1, 0}, {1, 2, 0}})));
  EXPECT_EQ(path.length_ps, 0);
  EXPECT_THAT(path.edges, ElementsAre(0));
}

TEST(LongestPathTest, ACycleIsNamed) {
  // a start -> a end -> b start -> a end.
  EXPECT_THAT(FindLongestPath(Graph({{0, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 4, 1}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("in a circle"), HasSubstr("'a' (event 0)"))));
}

TEST(EarliestTimesTest, EverythingHappensAsSoonAsItCan) {
  // 3 waits 5 for 1 and 2 for 2: max(7 + 5, 10 + 2).
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> times_ps,
                       EarliestTimes(Graph({{0, 1, 7}, {0, 2, 10}, {1, 3, 5}, {2, 3, 2}})));
  EXPECT_THAT(std::vector<int64_t>(times_ps.begin(), times_ps.begin() + 4),
              ElementsAre(0, 7, 10, 12));
}

TEST(EarliestTimesTest, TheLastIsTheEndOfTheLongestPath) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const PathGraph graph = RandomGraph(2 + 2 * (i % 12), random);
    if (graph.edges.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> times_ps, EarliestTimes(graph));
    EXPECT_EQ(*std::max_element(times_ps.begin(), times_ps.end()), path.length_ps);
  }
}

TEST(EarliestTimesTest, CyclesAndTimesThatDoNotFitAreRefused) {
  EXPECT_THAT(EarliestTimes(Graph({{0, 1, 1}, {1, 2, 1}, {2, 1, 0}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("events would wait for each other for ever"),
                             HasSubstr("in a circle, at the end of 'a' (event 0)"))));
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_THAT(EarliestTimes(Graph({{0, 1, kHuge}, {1, 2, kHuge}})),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(LongestPathTest, NothingToFindIsAnError) {
  EXPECT_THAT(FindLongestPath(PathGraph()), StatusIs(absl::StatusCode::kFailedPrecondition));
  PathGraph graph = Graph({{0, 1, 1}, {1, 2, 1}});
  graph.end_instant = 0;
  EXPECT_THAT(FindLongestPath(graph), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(LongestPathTest, SumsThatOverflowAreAnError) {
  constexpr int64_t kHalf = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_THAT(FindLongestPath(Graph({{0, 1, kHalf}, {1, 2, kHalf}})),
              StatusIs(absl::StatusCode::kOutOfRange));
}

// The greatest weight of any path that begins at the instant, by trying all.
int64_t Longest(const PathGraph& graph, InstantId instant) {
  int64_t longest_ps = 0;
  for (const GraphEdge& edge : graph.edges) {
    if (edge.from != instant) continue;
    longest_ps = std::max(longest_ps, edge.weight_ps + Longest(graph, edge.to));
  }
  return longest_ps;
}

TEST(LongestPathTest, NoPathIsLonger) {
  std::mt19937 random(20260501);
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    PathGraph graph = RandomGraph(2 + static_cast<int>(random() % 9), random);
    if (graph.edges.empty()) continue;
    // Any order of edges.
    std::shuffle(graph.edges.begin(), graph.edges.end(), random);
    int64_t longest_ps = 0;
    for (InstantId instant = 0; instant < graph.instants.size(); ++instant) {
      longest_ps = std::max(longest_ps, Longest(graph, instant));
    }
    ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
    EXPECT_EQ(path.length_ps, longest_ps);
    int64_t sum_ps = 0;
    for (size_t i = 0; i < path.edges.size(); ++i) {
      sum_ps += graph.edges[path.edges[i]].weight_ps;
      if (i > 0) {
        EXPECT_EQ(graph.edges[path.edges[i]].from, graph.edges[path.edges[i - 1]].to);
      }
    }
    EXPECT_EQ(sum_ps, longest_ps);
    ++compared;
  }
  EXPECT_GT(compared, 300);
}

TEST(PathBreakdownTest, AddsUpTheEdgesOfAnEvent) {
  PathGraph graph;
  graph.instants.resize(5);
  graph.events.resize(2);
  graph.edges = {{0, 1, 7, 1, EdgeType::kOperator, BoundBy::kCpu},
                 {1, 2, 0, kNoEvent, EdgeType::kSyncDependency, BoundBy::kNothing},
                 {2, 3, 5, 1, EdgeType::kOperator, BoundBy::kCpu},
                 {3, 4, 2, 1, EdgeType::kKernelKernelDelay, BoundBy::kKernelKernelOverhead}};
  const PathBreakdown breakdown = BreakDown(graph, {{0, 1, 2, 3}, 14});
  EXPECT_EQ(breakdown.Of(BoundBy::kCpu), 12);
  EXPECT_EQ(breakdown.Of(BoundBy::kKernelKernelOverhead), 2);
  EXPECT_EQ(breakdown.Of(BoundBy::kHostGap), 0);
  std::vector<std::string> shares;
  for (const EventShare& share : breakdown.shares) {
    shares.push_back(absl::StrCat(share.event == kNoEvent ? "-" : absl::StrCat(share.event), " ",
                                  EdgeTypeName(share.type), " ", share.time_ps));
  }
  EXPECT_THAT(shares,
              ElementsAre("1 operator 12", "- sync_dependency 0", "1 kernel_kernel_delay 2"));
}

TEST(PathBreakdownTest, TheSumIsThePathsLength) {
  std::mt19937 random(7);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const PathGraph graph = RandomGraph(2 + static_cast<int>(random() % 40), random);
    if (graph.edges.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
    const PathBreakdown breakdown = BreakDown(graph, path);
    EXPECT_EQ(std::accumulate(breakdown.time_ps.begin(), breakdown.time_ps.end(), int64_t{0}),
              path.length_ps);
    EXPECT_EQ(breakdown.Of(BoundBy::kNothing), 0);
    int64_t shares_ps = 0;
    for (const EventShare& share : breakdown.shares) shares_ps += share.time_ps;
    EXPECT_EQ(shares_ps, path.length_ps);
    ++compared;
  }
  EXPECT_GT(compared, 250);
}

// Time on no event is one share, but of host gaps each has its own, by the event after it.
TEST(BreakDownTest, HostGapsAreToldApartByWhatComesAfterThem) {
  PathGraph graph;
  graph.lanes.resize(1);
  graph.events.resize(2);
  graph.instants = {{0, kNoEvent, true}, {10, 0, true}, {20, 0, false}, {50, 1, true}};
  graph.edges = {{0, 1, 10, kNoEvent, EdgeType::kDependency, BoundBy::kHostGap},
                 {1, 2, 10, 0, EdgeType::kOperator, BoundBy::kCpu},
                 {2, 3, 30, kNoEvent, EdgeType::kDependency, BoundBy::kHostGap}};
  CriticalPath path;
  path.edges = {0, 1, 2};
  const PathBreakdown breakdown = BreakDown(graph, path);
  ASSERT_EQ(breakdown.shares.size(), 3u);
  EXPECT_EQ(breakdown.shares[0].before, 0u);
  EXPECT_EQ(breakdown.shares[0].time_ps, 10);
  EXPECT_EQ(breakdown.shares[2].event, kNoEvent);
  EXPECT_EQ(breakdown.shares[2].before, 1u);
  EXPECT_EQ(breakdown.shares[2].time_ps, 30);
}

}  // namespace
}  // namespace meridian
