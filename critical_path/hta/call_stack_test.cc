#include "critical_path/hta/call_stack.h"

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

std::string Letter(GraphEventId event) {
  return event == kNoEvent ? "." : std::string(1, static_cast<char>('A' + event));
}

// Takes {start, duration} of events A, B, ...; returns "+A parent" and "-A parent".
std::vector<std::string> Walk(const std::vector<std::pair<int64_t, int64_t>>& spans) {
  std::vector<GraphEvent> events;
  std::vector<GraphEventId> thread;
  for (const auto& [start_ps, duration_ps] : spans) {
    thread.insert(thread.begin(), static_cast<GraphEventId>(events.size()));
    GraphEvent event;
    event.start_ps = start_ps;
    event.duration_ps = duration_ps;
    events.push_back(event);
  }
  std::vector<std::string> steps;
  WalkCallStack(events, thread, [&](GraphEventId event, GraphEventId parent, bool enters) {
    steps.push_back(absl::StrCat(enters ? "+" : "-", Letter(event), " ", Letter(parent)));
  });
  return steps;
}

TEST(CallStackTest, NestsCalls) {
  EXPECT_THAT(Walk({{0, 10}, {2, 3}, {5, 5}, {12, 1}}),
              ElementsAre("+A .", "+B A", "-B A", "+C A", "-C A", "-A .", "+D .", "-D ."));
}

TEST(CallStackTest, OfEqualStartsTheLongerIsOutside) {
  EXPECT_THAT(Walk({{0, 5}, {0, 10}, {0, 10}}),
              ElementsAre("+B .", "+C B", "+A C", "-A C", "-C B", "-B ."));
}

TEST(CallStackTest, AnEndClosesWhateverIsInnermost) {
  // A [0, 10], B [5, 15]: at 10 it is B that is closed, as in HTA.
  EXPECT_THAT(Walk({{0, 10}, {5, 10}}), ElementsAre("+A .", "+B A", "-B A", "-A ."));
}

}  // namespace
}  // namespace meridian
