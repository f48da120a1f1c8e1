#include "critical_path/what_if/schedule.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PathGraph Chain(const std::vector<GraphEdge>& edges, int instants) {
  PathGraph graph;
  graph.lanes.push_back({0, TrackKind::kHost, "1", "1"});
  for (int instant = 0; instant < instants; ++instant) {
    graph.instants.push_back({0, static_cast<GraphEventId>(instant / 2), instant % 2 == 0});
    if (instant % 2 == 0) graph.events.push_back({graph.names.Intern("e"), 0, 0, 0});
  }
  graph.edges = edges;
  return graph;
}

GraphEdge Edge(InstantId from, InstantId to, int64_t weight_ps) {
  return {from, to, weight_ps, kNoEvent, EdgeType::kOperator, BoundBy::kCpu};
}

TEST(ScheduleSimulationTest, EverythingHappensAsSoonAsItCan) {
  // 3 waits 5 for 1 and 2 for 2: max(7 + 5, 10 + 2).
  EXPECT_THAT(
      SimulateSchedule(Chain({Edge(0, 1, 7), Edge(0, 2, 10), Edge(1, 3, 5), Edge(2, 3, 2)}, 4))
          .value(),
      ElementsAre(0, 7, 10, 12));
}

TEST(ScheduleSimulationTest, ACircleIsNamed) {
  const absl::Status status =
      SimulateSchedule(Chain({Edge(0, 1, 1), Edge(1, 2, 1), Edge(2, 1, 0)}, 4)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("events would wait for each other for ever: rank 0 node"));
}

TEST(ScheduleSimulationTest, TheEndIsThatOfTheLongestPath) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const PathGraph graph = RandomGraph(2 + 2 * (i % 12), random);
    if (graph.edges.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(graph));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> times_ps, SimulateSchedule(graph));
    EXPECT_EQ(*std::max_element(times_ps.begin(), times_ps.end()), path.length_ps);
  }
}

TEST(ScheduleSimulationTest, TimesThatDoNotFitAreRefused) {
  constexpr int64_t kHuge = INT64_MAX / 2 + 1;
  EXPECT_EQ(SimulateSchedule(Chain({Edge(0, 1, kHuge), Edge(1, 2, kHuge)}, 4)).status().code(),
            absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace meridian
