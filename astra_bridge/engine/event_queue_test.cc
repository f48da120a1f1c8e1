#include "astra_bridge/engine/event_queue.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(EventQueueTest, TakesEventsInTheOrderOfTime) {
  EventQueue queue(/*ranks=*/2);
  queue.Schedule(7, EventKind::kPrepared, 1);
  queue.Schedule(1000000000000, EventKind::kCrossed, 2);
  queue.Schedule(3, EventKind::kNodeDone, 3, 4);
  Event event;
  ASSERT_TRUE(queue.Pop(&event));
  EXPECT_EQ(event.time_ns, 3);
  EXPECT_EQ(event.kind, EventKind::kNodeDone);
  EXPECT_EQ(event.subject, 3u);
  EXPECT_EQ(event.detail, 4u);
  EXPECT_EQ(queue.now_ns(), 3);
  ASSERT_TRUE(queue.Pop(&event));
  EXPECT_EQ(event.time_ns, 7);
  ASSERT_TRUE(queue.Pop(&event));
  EXPECT_EQ(event.time_ns, 1000000000000);
  EXPECT_FALSE(queue.Pop(&event));
}

TEST(EventQueueTest, AddsToTheInstantThatIsUnderWay) {
  EventQueue queue(/*ranks=*/2);
  queue.Schedule(5, EventKind::kPrepared, 1);
  queue.Schedule(5, EventKind::kPrepared, 2);
  Event event;
  ASSERT_TRUE(queue.Pop(&event));
  queue.Schedule(5, EventKind::kPrepared, 3);
  std::vector<uint32_t> rest;
  while (queue.Pop(&event)) rest.push_back(event.subject);
  EXPECT_EQ(rest, (std::vector<uint32_t>{2, 3}));
}

TEST(EventQueueTest, EventsOfARankHappenTogether) {
  EventQueue queue(/*ranks=*/2);
  queue.Schedule(7, EventKind::kLinkFree, 3);
  queue.ScheduleOnRank(0, 7, EventKind::kPrepared, 10);
  queue.ScheduleOnRank(1, 7, EventKind::kPrepared, 11);
  queue.Schedule(7, EventKind::kLinkFree, 4);
  queue.ScheduleOnRank(0, 7, EventKind::kPrepared, 12);
  queue.ScheduleOnRank(0, 5, EventKind::kReduce, 13);
  queue.ScheduleOnRank(0, 6, EventKind::kReduce, 14);
  std::vector<uint32_t> order;
  Event event;
  while (queue.Pop(&event)) {
    order.push_back(event.subject);
    // While the rank's events are under way, more are added to them; afterwards they come anew.
    if (event.subject == 10) queue.ScheduleOnRank(0, 7, EventKind::kPrepared, 15);
    if (event.subject == 11) queue.ScheduleOnRank(0, 7, EventKind::kPrepared, 16);
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{13, 14, 3, 10, 12, 15, 11, 4, 16}));
  EXPECT_EQ(queue.now_ns(), 7);
}

// Against a map of lists, which keeps the order of insertion for equal times.
TEST(EventQueueTest, KeepsTheOrderOfEqualTimesAmongRandomEvents) {
  std::mt19937_64 random(11);
  EventQueue queue(/*ranks=*/2);
  std::multimap<int64_t, uint32_t> expected;
  const auto schedule = [&](uint32_t number) {
    // Near and far, with many equal times.
    const int64_t delay = static_cast<int64_t>(random() % 4) << (random() % 20);
    queue.Schedule(queue.now_ns() + delay, EventKind::kPrepared, number);
    expected.emplace(queue.now_ns() + delay, number);
  };
  uint32_t next = 0;
  while (next < 100) schedule(next++);
  Event event;
  while (queue.Pop(&event)) {
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(event.time_ns, expected.begin()->first);
    ASSERT_EQ(event.subject, expected.begin()->second);
    expected.erase(expected.begin());
    for (uint64_t i = random() % 3; i > 0 && next < 20000; --i) schedule(next++);
    if (expected.empty() && next < 20000) schedule(next++);
  }
  EXPECT_TRUE(expected.empty());
  EXPECT_EQ(next, 20000u);
}

}  // namespace
}  // namespace meridian
