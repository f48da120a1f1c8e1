#include "xla_profiler/dependencies/call_index.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Optional;

EventRow Add(EventTable* table, TrackId track, int64_t start_ps,
             std::optional<uint64_t> correlation) {
  EventRecord event;
  event.track = track;
  event.name = table->InternName("event");
  event.start_ps = start_ps;
  event.correlation = correlation;
  return table->Add(event);
}

TEST(CallIndexTest, FindsTheInnermostHostRow) {
  EventTable table;
  const TrackId host = table.AddTrack({});
  Track stream;
  stream.kind = TrackKind::kDevice;
  const TrackId device = table.AddTrack(stream);
  Add(&table, host, 10, 7);
  const EventRow inner = Add(&table, host, 11, 7);
  Add(&table, host, 9, 7);
  Add(&table, device, 20, 7);
  Add(&table, device, 20, 8);
  Add(&table, host, 30, 0);
  Add(&table, host, 40, std::nullopt);
  const CallIndex calls(table);
  EXPECT_THAT(calls.Find(7), Optional(inner));
  EXPECT_EQ(calls.Find(8), std::nullopt);
  EXPECT_EQ(calls.Find(0), std::nullopt);
  EXPECT_EQ(calls.Find(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace meridian
