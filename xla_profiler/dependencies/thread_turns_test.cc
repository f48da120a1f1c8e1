#include "xla_profiler/dependencies/thread_turns.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

class ThreadTurnsTest : public ::testing::Test {
 protected:
  // Returns a thread of the process.
  TrackId Thread(const std::string& process = "1") {
    Track track;
    track.process = process;
    return table_.AddTrack(track);
  }

  void Add(TrackId track, const std::string& name, int64_t start_ps, int64_t end_ps,
           EventCategory category = EventCategory::kCpuOp) {
    EventRecord event;
    event.track = track;
    event.name = table_.InternName(name);
    event.start_ps = start_ps;
    event.duration_ps = end_ps - start_ps;
    event.category = category;
    table_.Add(event);
  }

  // Returns e.g. "end of b", or "nobody".
  std::string Find(TrackId track, int64_t begin_ps, int64_t end_ps,
                   std::optional<TrackId> home = std::nullopt) const {
    const TrackIndex index(table_);
    const ThreadTurns turns(table_, index, FindWorkers(table_, {}), home);
    const std::optional<ThreadTurns::Moment> turn = turns.Find(track, begin_ps, end_ps);
    if (!turn.has_value()) return "nobody";
    return absl::StrCat(turn->is_start ? "start of " : "end of ", table_.name(turn->row));
  }

  EventTable table_;
};

TEST_F(ThreadTurnsTest, AThreadIsContinuedByTheLastThatDidAWholeStretch) {
  const TrackId home = Thread(), other = Thread();
  Add(home, "forward", 0, 100);
  Add(other, "a", 110, 150);
  Add(other, "b", 160, 200);
  Add(other, "inner", 170, 180);
  Add(home, "optimizer", 250, 400);
  EXPECT_EQ(Find(home, 100, 250), "end of b");
  // b had begun before, so that it is no turn that begins in this gap.
  EXPECT_EQ(Find(home, 165, 250), "nobody");
  EXPECT_EQ(Find(home, 100, 105), "nobody");
}

TEST_F(ThreadTurnsTest, AWorkerIsContinuedByWhatTheHomeThreadDidLast) {
  const TrackId home = Thread(), worker = Thread(), third = Thread();
  Add(home, "forward", 0, 1000);
  Add(home, "inner", 100, 200);
  Add(worker, "backward", 300, 400);
  Add(third, "loader", 220, 250);
  // Inner's end is the last that the home thread did; what others did meanwhile does not count.
  EXPECT_EQ(Find(worker, 50, 300), "end of inner");
  EXPECT_EQ(Find(worker, 50, 150), "start of inner");
  // Another home.
  EXPECT_EQ(Find(worker, 50, 300, third), "end of loader");
}

TEST_F(ThreadTurnsTest, WhoOnlyWatchesIsContinuedByWhoeverWorkedLast) {
  const TrackId home = Thread(), worker = Thread(), watcher = Thread();
  Add(home, "forward", 0, 1000);
  Add(worker, "backward", 1100, 1200);
  Add(watcher, "cudaEventQuery", 0, 1, EventCategory::kRuntimeApi);
  EXPECT_EQ(Find(watcher, 1, 1500), "end of backward");
}

TEST_F(ThreadTurnsTest, ThreadsOfOtherProcessesDoNotCount) {
  const TrackId home = Thread(), other = Thread("2");
  Add(home, "forward", 0, 100);
  Add(other, "a", 110, 150);
  EXPECT_EQ(Find(home, 100, 250), "nobody");
}

}  // namespace
}  // namespace meridian
