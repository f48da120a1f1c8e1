#include "xla_profiler/events/track_index.h"

#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
