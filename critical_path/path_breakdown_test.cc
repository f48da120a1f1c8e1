#include "critical_path/path_breakdown.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

TEST(PathBreakdownTest, AddsUpTheEdgesOfAnEvent) {
  PathGraph graph;
  graph.nodes.resize(5);
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
                                  EdgeTypeName(share.type), " ", share.count, " x ",
                                  share.time_ps));
  }
  EXPECT_THAT(shares, ElementsAre("1 operator 2 x 12", "- sync_dependency 1 x 0",
                                  "1 kernel_kernel_delay 1 x 2"));
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
    int64_t shares_ps = 0, edges = 0;
    for (const EventShare& share : breakdown.shares) {
      shares_ps += share.time_ps;
      edges += share.count;
    }
    EXPECT_EQ(shares_ps, path.length_ps);
    EXPECT_EQ(edges, static_cast<int64_t>(path.edges.size()));
    ++compared;
  }
  EXPECT_GT(compared, 250);
}

}  // namespace
}  // namespace meridian
