#include "trace_alignment/testing/order_check.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

struct Times {
  int64_t start_ps;
  int64_t end_ps;
};

// Events of one line, named by their position.
std::vector<ProfileEvent> Line(const std::vector<Times>& times) {
  std::vector<ProfileEvent> events;
  for (const Times& time : times) {
    ProfileEvent event;
    event.start_ps = time.start_ps;
    event.end_ps = time.end_ps;
    event.name = "event " + std::to_string(events.size());
    events.push_back(event);
  }
  return events;
}

// A parent, a child that starts with it, one that ends with it, and one after; not in order.
const std::vector<Times> kBefore = {{60, 100}, {0, 100}, {0, 40}, {120, 130}};

TEST(OrderCheckTest, CountsWhatIsKept) {
  ASSERT_OK_AND_ASSIGN(
      const OrderCheck check,
      CheckOrderAndNesting(Line(kBefore), Line({{160, 200}, {100, 200}, {100, 140}, {220, 230}})));
  EXPECT_EQ(check.equal_starts, 1);
  EXPECT_EQ(check.children, 2);
}

TEST(OrderCheckTest, NamesTheEventThatIsNot) {
  const auto expect_broken = [](const std::vector<Times>& after, const char* message) {
    EXPECT_THAT(CheckOrderAndNesting(Line(kBefore), Line(after)),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(message)));
  };
  expect_broken({{60, 101}, {0, 100}, {0, 40}, {120, 130}},
                "event 0 at 60 ps of 40 ps before: ends after its parent event 1");
  expect_broken({{60, 100}, {0, 100}, {1, 40}, {120, 130}},
                "event 2 at 0 ps of 40 ps before: starts no longer with its predecessor");
  expect_broken({{60, 100}, {0, 100}, {0, 40}, {59, 130}},
                "event 3 at 120 ps of 10 ps before: starts before its predecessor now");
  expect_broken({{60, 100}, {0, 100}, {0, 40}}, "4 events became 3");
}

TEST(OrderCheckTest, LinesDoNotMatterToEachOther) {
  std::vector<ProfileEvent> before = Line({{0, 100}, {0, 40}});
  std::vector<ProfileEvent> after = Line({{0, 100}, {500, 540}});
  before[1].line = after[1].line = 1;
  ASSERT_OK_AND_ASSIGN(const OrderCheck check, CheckOrderAndNesting(before, after));
  EXPECT_EQ(check.equal_starts, 0);
  EXPECT_EQ(check.children, 0);
}

}  // namespace
}  // namespace meridian
