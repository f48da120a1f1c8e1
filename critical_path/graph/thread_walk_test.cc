#include "critical_path/graph/path_graph.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Walk {
  // "+A" and "-A" for start and end of event 0, and what was open before.
  std::vector<std::string> steps;
};

std::string Letter(GraphEventId event) {
  return event == kNoEvent ? "." : std::string(1, static_cast<char>('A' + event));
}

// Takes {start, duration} of events A, B, ..., in the order in which they nest.
Walk WalkEvents(const std::vector<std::pair<int64_t, int64_t>>& spans) {
  std::vector<GraphEvent> events;
  std::vector<GraphEventId> thread;
  for (const auto& [start_ps, duration_ps] : spans) {
    thread.push_back(static_cast<GraphEventId>(events.size()));
    GraphEvent event;
    event.start_ps = start_ps;
    event.duration_ps = duration_ps;
    events.push_back(event);
  }
  Walk walk;
  WalkThread(events, thread, [&](const ThreadStep& step) {
    walk.steps.push_back(
        absl::StrCat(step.is_start ? "+" : "-", Letter(step.event), " ", Letter(step.open)));
  });
  return walk;
}

TEST(ThreadWalkTest, NestsCalls) {
  // A [0, 10] holds B [2, 5] and C [5, 10]; then D [12, 13].
  const Walk walk = WalkEvents({{0, 10}, {2, 3}, {5, 5}, {12, 1}});
  EXPECT_THAT(walk.steps,
              ElementsAre("+A .", "+B A", "-B B", "+C A", "-C C", "-A A", "+D .", "-D D"));
}

TEST(ThreadWalkTest, KnowsWhatIsOpenWhenCallsOverlap) {
  // A [0, 10], B [5, 15]: A ends within B.
  const Walk walk = WalkEvents({{0, 10}, {5, 10}});
  EXPECT_THAT(walk.steps, ElementsAre("+A .", "+B A", "-A B", "-B B"));
}

TEST(ThreadWalkTest, GoesBackToTheOuterCallAfterAnOverlap) {
  // A [0, 30] holds B [5, 15] and C [10, 20], which overlap.
  const Walk walk = WalkEvents({{0, 30}, {5, 10}, {10, 10}});
  EXPECT_THAT(walk.steps, ElementsAre("+A .", "+B A", "+C B", "-B C", "-C C", "-A A"));
}

TEST(ThreadWalkTest, ClosesInnerCallsFirst) {
  // All end at 10, and an event without duration starts where they end.
  const Walk walk = WalkEvents({{0, 10}, {0, 10}, {4, 6}, {10, 0}});
  EXPECT_THAT(walk.steps,
              ElementsAre("+A .", "+B A", "+C B", "-C C", "-B B", "-A A", "+D .", "-D D"));
}

TEST(ThreadWalkTest, AnEmptyThreadHasNoSteps) { EXPECT_THAT(WalkEvents({}).steps, IsEmpty()); }

}  // namespace
}  // namespace meridian
