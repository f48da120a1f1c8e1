#include "xla_profiler/events/event_table.h"

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(EventTableTest, KeepsRowsAcrossBlocks) {
  EventTable table;
  constexpr int kRows = 10000;
  for (int i = 0; i < kRows; ++i) {
    EventRecord event;
    event.track = i % 7;
    event.name = i % 11;
    event.start_ps = -i;
    event.duration_ps = i * int64_t{1000000};
    event.category = static_cast<EventCategory>(i % kNumEventCategories);
    if (i % 2 == 0) event.correlation = i;
    event.source_offset = uint64_t{1} << 40 | i;
    EXPECT_EQ(table.Add(event), i);
  }
  EXPECT_EQ(table.size(), kRows);
  const EventTable moved = std::move(table);
  for (int i = 0; i < kRows; ++i) {
    EXPECT_EQ(moved.track_id(i), i % 7);
    EXPECT_EQ(moved.name_id(i), i % 11);
    EXPECT_EQ(moved.start_ps(i), -i);
    EXPECT_EQ(moved.duration_ps(i), i * int64_t{1000000});
    EXPECT_EQ(moved.end_ps(i), i * int64_t{999999});
    EXPECT_EQ(moved.category(i), static_cast<EventCategory>(i % kNumEventCategories));
    EXPECT_EQ(moved.correlation(i), i % 2 == 0 ? std::optional<uint64_t>(i) : std::nullopt);
    EXPECT_EQ(moved.source_offset(i), uint64_t{1} << 40 | i);
  }
}

TEST(EventTableTest, NamesAndTracksAreLookedUpById) {
  EventTable table;
  table.set_base_ns(1711964646000000000);
  Track track;
  track.kind = TrackKind::kDevice;
  track.name = "stream 7";
  EventRecord event;
  event.track = table.AddTrack(track);
  event.name = table.InternName("kernel");
  EXPECT_EQ(table.InternName("kernel"), event.name);
  const EventRow row = table.Add(event);
  EXPECT_EQ(table.name(row), "kernel");
  EXPECT_EQ(table.track(table.track_id(row)).name, "stream 7");
  table.mutable_track(event.track).name = "stream 8";
  EXPECT_EQ(table.tracks()[0].name, "stream 8");
  EXPECT_EQ(table.base_ns(), 1711964646000000000);
}

TEST(EventTableTest, ADurationMayBeSetLater) {
  EventTable table;
  table.Add({});
  table.Add({});
  table.set_duration_ps(1, 5);
  EXPECT_EQ(table.duration_ps(0), 0);
  EXPECT_EQ(table.duration_ps(1), 5);
}

TEST(EventTableTest, LargeCorrelationsAreKept) {
  EventTable table;
  EventRecord event;
  event.correlation = std::numeric_limits<uint64_t>::max() - 1;
  EXPECT_THAT(table.correlation(table.Add(event)),
              Optional(std::numeric_limits<uint64_t>::max() - 1));
}

TEST(EventTableDeathTest, NegativeDurationsAreOurMistake) {
  EventTable table;
  EventRecord event;
  event.duration_ps = -1;
  EXPECT_DEATH(table.Add(event), "check failed");
}

void Add(EventTable& table, TrackId track, int64_t start_ps, int64_t duration_ps) {
  EventRecord event;
  event.track = track;
  event.start_ps = start_ps;
  event.duration_ps = duration_ps;
  table.Add(event);
}

TEST(TrackIndexTest, SortsByStartThenOuterFirstThenFileOrder) {
  EventTable table;
  for (int i = 0; i < 4; ++i) table.AddTrack({});
  Add(table, 0, 5, 1);    // row 0
  Add(table, 2, 9, 0);    // row 1
  Add(table, 0, -3, 1);   // row 2
  Add(table, 0, 5, 10);   // row 3
  Add(table, 0, 5, 1);    // row 4
  Add(table, 2, 8, 100);  // row 5
  const TrackIndex index(table);
  EXPECT_THAT(index.Rows(0), ElementsAre(2, 3, 0, 4));
  EXPECT_THAT(index.Rows(1), IsEmpty());
  EXPECT_THAT(index.Rows(2), ElementsAre(5, 1));
  EXPECT_THAT(index.Rows(3), IsEmpty());
}

TEST(TrackIndexTest, AnEmptyTableHasAnIndex) {
  EventTable table;
  table.AddTrack({});
  EXPECT_THAT(TrackIndex(table).Rows(0), IsEmpty());
}

TEST(TrackIndexTest, EveryRowIsInItsTrackOnce) {
  std::mt19937 random(7);
  EventTable table;
  constexpr TrackId kTracks = 20;
  for (TrackId i = 0; i < kTracks; ++i) table.AddTrack({});
  for (int i = 0; i < 5000; ++i) Add(table, random() % kTracks, random() % 100, random() % 5);
  const TrackIndex index(table);
  std::vector<bool> seen(table.size());
  for (TrackId track = 0; track < kTracks; ++track) {
    for (EventRow row : index.Rows(track)) {
      EXPECT_EQ(table.track_id(row), track);
      EXPECT_FALSE(seen[row]);
      seen[row] = true;
    }
  }
  EXPECT_THAT(seen, ::testing::Each(true));
}

}  // namespace
}  // namespace meridian
