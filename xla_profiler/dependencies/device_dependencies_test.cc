#include "xla_profiler/dependencies/device_dependencies.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/testing/dependency_text.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A process with one host thread and streams on devices. Times are in picoseconds.
class Profile {
 public:
  Profile() : thread_(table_.AddTrack({})) {}

  const EventTable& table() const { return table_; }

  TrackId AddStream(int64_t device_id, int64_t number) {
    Track track;
    track.kind = TrackKind::kDevice;
    track.device_id = device_id;
    track.thread = absl::StrCat(number);
    return table_.AddTrack(track);
  }

  EventRow Call(absl::string_view name, int64_t start_ps, int64_t end_ps,
                std::optional<uint64_t> correlation = std::nullopt) {
    return Add(thread_, EventCategory::kRuntimeApi, name, start_ps, end_ps, correlation);
  }

  // A call on a thread that does nothing else.
  EventRow CallOfAnotherThread(absl::string_view name, int64_t start_ps, int64_t end_ps) {
    Track track;
    track.thread = absl::StrCat("thread ", start_ps);
    return Add(table_.AddTrack(track), EventCategory::kRuntimeApi, name, start_ps, end_ps,
               std::nullopt);
  }

  EventRow Work(TrackId stream, absl::string_view name, int64_t start_ps, int64_t end_ps,
                std::optional<uint64_t> correlation,
                EventCategory category = EventCategory::kKernel) {
    return Add(stream, category, name, start_ps, end_ps, correlation);
  }

  // A kernel that was launched at `call_ps` by a call of 1 ps.
  EventRow Kernel(TrackId stream, absl::string_view name, int64_t call_ps, int64_t start_ps,
                  int64_t end_ps) {
    const uint64_t correlation = ++last_correlation_;
    Call(absl::StrCat("launch ", name), call_ps, call_ps + 1, correlation);
    return Work(stream, name, start_ps, end_ps, correlation);
  }

 private:
  EventRow Add(TrackId track, EventCategory category, absl::string_view name, int64_t start_ps,
               int64_t end_ps, std::optional<uint64_t> correlation) {
    EventRecord event;
    event.track = track;
    event.name = table_.InternName(name);
    event.start_ps = start_ps;
    event.duration_ps = end_ps - start_ps;
    event.category = category;
    event.correlation = correlation;
    return table_.Add(event);
  }

  EventTable table_;
  TrackId thread_;
  uint64_t last_correlation_ = 1000;
};

SyncCall EventWait(EventRow call, int64_t stream, EventRow record, int64_t record_stream) {
  SyncCall sync;
  sync.kind = DeviceDependencyKind::kEventWait;
  sync.call = call;
  sync.stream = stream;
  sync.record = record;
  sync.record_stream = record_stream;
  return sync;
}

SyncCall EventSync(EventRow call, EventRow record, int64_t record_stream) {
  SyncCall sync;
  sync.kind = DeviceDependencyKind::kEventSync;
  sync.call = call;
  sync.record = record;
  sync.record_stream = record_stream;
  return sync;
}

SyncCall StreamSync(EventRow call, std::optional<int64_t> stream) {
  SyncCall sync;
  sync.kind = DeviceDependencyKind::kStreamSync;
  sync.call = call;
  sync.stream = stream;
  return sync;
}

SyncCall DeviceSync(EventRow call, std::optional<int64_t> device_id) {
  SyncCall sync;
  sync.kind = DeviceDependencyKind::kDeviceSync;
  sync.call = call;
  sync.device_id = device_id;
  return sync;
}

TEST(DeviceDependenciesTest, ACallLaunchesTheWorkOfItsCorrelation) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("cudaLaunchKernel", 10, 20, 1);
  profile.Call("cudaMemcpyAsync", 30, 40, 2);
  profile.Work(stream, "copy", 50, 60, 2, EventCategory::kMemcpy);
  profile.Work(stream, "gemm", 45, 50, 1);
  // These are no work.
  profile.Work(stream, "annotation", 45, 60, 1, EventCategory::kDeviceAnnotation);
  profile.Work(stream, "Stream Sync", 45, 60, 2, EventCategory::kDeviceSync);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kLaunch),
              ElementsAre("launch: cudaMemcpyAsync -> copy", "launch: cudaLaunchKernel -> gemm"));
  EXPECT_EQ(found.num_work, 2);
}

TEST(DeviceDependenciesTest, AGraphLaunchesAllItsKernels) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("cudaGraphLaunch", 10, 20, 1);
  profile.Work(stream, "a", 30, 40, 1);
  profile.Work(stream, "b", 40, 50, 1);
  profile.Work(profile.AddStream(0, 8), "c", 35, 60, 1);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kLaunch),
              ElementsAre("launch: cudaGraphLaunch -> a", "launch: cudaGraphLaunch -> b",
                          "launch: cudaGraphLaunch -> c"));
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: a -> b"));
}

TEST(DeviceDependenciesTest, WorkMayStartBeforeItsCallReturnsButNotBeforeItBegins) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("early", 10, 20, 1);
  profile.Work(stream, "a", 15, 30, 1);
  profile.Call("impossible", 50, 60, 2);
  profile.Work(stream, "b", 49, 70, 2);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kLaunch),
              ElementsAre("launch: early -> a"));
}

TEST(DeviceDependenciesTest, StreamOrderIsByStartWithinAStream) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  const TrackId other = profile.AddStream(0, 8);
  profile.Kernel(stream, "c", 3, 50, 60);
  profile.Kernel(stream, "a", 1, 10, 20);
  profile.Kernel(other, "x", 4, 20, 30);
  profile.Kernel(stream, "b", 2, 20, 40);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: b -> c", "stream order: a -> b"));
}

TEST(DeviceDependenciesTest, EqualStreamNumbersOnTwoDevicesAreTwoStreams) {
  Profile profile;
  const TrackId first = profile.AddStream(0, 7);
  const TrackId second = profile.AddStream(1, 7);
  profile.Kernel(first, "a0", 1, 10, 20);
  profile.Kernel(second, "a1", 2, 20, 30);
  profile.Kernel(first, "b0", 3, 30, 40);
  profile.Kernel(second, "b1", 4, 40, 50);
  SyncCall sync = StreamSync(profile.Call("cudaStreamSynchronize", 5, 60), 7);
  sync.device_id = 1;
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {sync});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: a0 -> b0", "stream order: a1 -> b1"));
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: b1 -> cudaStreamSynchronize"));
}

// time   10  20  30  40  50  60
//        a---b-----------d---
//            c-------    e---
TEST(DeviceDependenciesTest, BranchesOfAGraphForkAndJoin) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("cudaGraphLaunch", 1, 2, 1);
  profile.Work(stream, "a", 10, 20, 1);
  profile.Work(stream, "b", 20, 50, 1);
  profile.Work(stream, "c", 20, 40, 1);
  profile.Work(stream, "d", 50, 60, 1);
  profile.Work(stream, "e", 50, 60, 1);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: a -> b", "stream order: a -> c", "stream order: b -> d",
                          "stream order: c -> d", "stream order: b -> e"));
  EXPECT_EQ(FindBadEdge(profile.table(), found), "");
}

// A kernel of 50 us that starts 10 us before the work before it has ended waits for that; one that
// starts 26 us before is a branch of its own.
TEST(DeviceDependenciesTest, WorkThatStartsALittleEarlyWaitsForTheWorkBefore) {
  constexpr int64_t kUs = 1'000'000;
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Work(stream, "a", 0, 100 * kUs, 1);
  profile.Work(stream, "early", 90 * kUs, 140 * kUs, 2);
  profile.Work(stream, "branch", 114 * kUs, 200 * kUs, 3);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: a -> early", "stream order: a -> branch"));
}

TEST(DeviceDependenciesTest, WorkBeforeTheFirstLaunchOfItsStreamWasLaunchedEarlier) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7), other = profile.AddStream(0, 8);
  const EventRow earlier = profile.Work(stream, "earlier", 10, 20, 99);
  const EventRow launched = profile.Kernel(stream, "launched", 15, 20, 30);
  const EventRow unknown = profile.Work(stream, "unknown", 40, 50, 98);
  // Nothing tells that this stream's launches were recorded.
  const EventRow alone = profile.Work(other, "alone", 10, 20, 97);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_TRUE(found.IsEarlier(earlier));
  EXPECT_FALSE(found.IsEarlier(launched));
  EXPECT_FALSE(found.IsEarlier(unknown));
  EXPECT_FALSE(found.IsEarlier(alone));
}

TEST(DeviceDependenciesTest, InstantsAtOneTimeAreInFileOrder) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Kernel(stream, "a", 1, 10, 10);
  profile.Kernel(stream, "b", 2, 10, 10);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamOrder),
              ElementsAre("stream order: a -> b"));
}

// host    launch a, record, launch b, wait, launch c, launch d
// 7       a a a a a a b b b
// 8                   c d
TEST(DeviceDependenciesTest, AStreamWaitsForTheLastWorkBeforeTheRecord) {
  Profile profile;
  const TrackId producer = profile.AddStream(0, 7);
  const TrackId consumer = profile.AddStream(0, 8);
  profile.Kernel(consumer, "before", 1, 5, 8);
  profile.Kernel(producer, "a", 10, 20, 100);
  const EventRow record = profile.Call("cudaEventRecord", 12, 13);
  profile.Kernel(producer, "b", 14, 100, 130);
  const EventRow wait = profile.Call("cudaStreamWaitEvent", 16, 17);
  profile.Kernel(consumer, "c", 18, 101, 102);
  profile.Kernel(consumer, "d", 20, 102, 110);
  const DeviceDependencies found =
      FindDeviceDependencies(profile.table(), {EventWait(wait, 8, record, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventWait),
              ElementsAre("event wait: a -> c"));
}

TEST(DeviceDependenciesTest, AWaitKeepsItsRecordWhenTheEventIsRecordedAgain) {
  Profile profile;
  const TrackId producer = profile.AddStream(0, 7);
  const TrackId consumer = profile.AddStream(0, 8);
  profile.Kernel(producer, "a", 10, 20, 30);
  const EventRow first_record = profile.Call("cudaEventRecord", 12, 13);
  const EventRow first_wait = profile.Call("cudaStreamWaitEvent", 14, 15);
  profile.Kernel(producer, "b", 16, 30, 50);
  const EventRow second_record = profile.Call("cudaEventRecord", 18, 19);
  profile.Kernel(consumer, "c", 20, 31, 40);
  const EventRow second_wait = profile.Call("cudaStreamWaitEvent", 22, 23);
  profile.Kernel(consumer, "d", 24, 50, 60);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(),
      {EventWait(first_wait, 8, first_record, 7), EventWait(second_wait, 8, second_record, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventWait),
              ElementsAre("event wait: a -> c", "event wait: b -> d"));
}

TEST(DeviceDependenciesTest, AllWaitsBeforeAKernelAreKept) {
  Profile profile;
  profile.Kernel(profile.AddStream(0, 7), "a", 1, 20, 30);
  const EventRow record_a = profile.Call("cudaEventRecord", 3, 4);
  profile.Kernel(profile.AddStream(0, 8), "b", 5, 20, 40);
  const EventRow record_b = profile.Call("cudaEventRecord", 7, 8);
  const EventRow wait_a = profile.Call("cudaStreamWaitEvent", 9, 10);
  const EventRow wait_b = profile.Call("cudaStreamWaitEvent", 11, 12);
  profile.Kernel(profile.AddStream(0, 9), "c", 13, 40, 50);
  // The first is given twice.
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {EventWait(wait_b, 9, record_b, 8), EventWait(wait_a, 9, record_a, 7),
                        EventWait(wait_b, 9, record_b, 8)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventWait),
              ElementsAre("event wait: a -> c", "event wait: b -> c"));
}

TEST(DeviceDependenciesTest, CountsWaitsThatLackWorkOnEitherSide) {
  Profile profile;
  const TrackId producer = profile.AddStream(0, 7);
  const TrackId consumer = profile.AddStream(0, 8);
  const EventRow early_record = profile.Call("cudaEventRecord", 1, 2);
  const EventRow early_wait = profile.Call("cudaStreamWaitEvent", 3, 4);
  profile.Kernel(producer, "a", 10, 20, 30);
  profile.Kernel(consumer, "b", 12, 20, 30);
  const EventRow late_record = profile.Call("cudaEventRecord", 40, 41);
  const EventRow late_wait = profile.Call("cudaStreamWaitEvent", 42, 43);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(),
      {EventWait(early_wait, 8, early_record, 7), EventWait(late_wait, 8, late_record, 7),
       // Streams that have no work at all.
       EventWait(late_wait, 8, late_record, 99), EventWait(late_wait, 99, late_record, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventWait), IsEmpty());
}

TEST(DeviceDependenciesTest, CountsWaitsThatDoNotTellEnough) {
  Profile profile;
  profile.Kernel(profile.AddStream(0, 7), "a", 10, 20, 30);
  profile.Kernel(profile.AddStream(1, 8), "b", 50, 60, 70);
  const EventRow record = profile.Call("cudaEventRecord", 12, 13);
  const EventRow wait = profile.Call("cudaStreamWaitEvent", 14, 15);
  SyncCall no_device = EventWait(wait, 8, record, 7);
  SyncCall no_call = no_device;
  no_call.call.reset();
  SyncCall no_record = no_device;
  no_record.record.reset();
  SyncCall no_stream = no_device;
  no_stream.device_id = 0;
  no_stream.stream.reset();
  SyncCall no_record_stream = no_device;
  no_record_stream.device_id = 0;
  no_record_stream.record_stream.reset();
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {no_call, no_device, no_record, no_stream, no_record_stream});
}

TEST(DeviceDependenciesTest, AWaitThatTheTimesContradictIsNoEdge) {
  Profile profile;
  profile.Kernel(profile.AddStream(0, 7), "a", 1, 20, 31);
  const EventRow record = profile.Call("cudaEventRecord", 3, 4);
  const EventRow wait = profile.Call("cudaStreamWaitEvent", 5, 6);
  profile.Kernel(profile.AddStream(0, 8), "b", 7, 30, 40);
  const DeviceDependencies found =
      FindDeviceDependencies(profile.table(), {EventWait(wait, 8, record, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventWait), IsEmpty());
}

TEST(DeviceDependenciesTest, TheHostWaitsForARecordedEvent) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Kernel(stream, "a", 1, 20, 30);
  const EventRow record = profile.Call("cudaEventRecord", 3, 4);
  profile.Kernel(stream, "b", 5, 30, 40);
  const EventRow query = profile.Call("cudaEventQuery", 7, 8);
  const EventRow synchronize = profile.Call("cudaEventSynchronize", 9, 31);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {EventSync(query, record, 7), EventSync(synchronize, record, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kEventSync),
              ElementsAre("event sync: a -> cudaEventSynchronize"));
  // The query came too early.
}

TEST(DeviceDependenciesTest, AStreamSyncWaitsForThatStreamOnly) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Kernel(stream, "a", 1, 20, 30);
  profile.Kernel(stream, "b", 3, 30, 40);
  profile.Kernel(profile.AddStream(0, 8), "x", 5, 30, 35);
  const EventRow sync = profile.Call("cudaStreamSynchronize", 7, 41);
  profile.Kernel(stream, "c", 42, 50, 60);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {StreamSync(sync, 7), StreamSync(sync, 9), StreamSync(sync, std::nullopt)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: b -> cudaStreamSynchronize"));
}

TEST(DeviceDependenciesTest, TheLastWorkOfABranchedGraphIsTheLastToEnd) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("cudaGraphLaunch", 1, 2, 1);
  profile.Work(stream, "a", 10, 50, 1);
  profile.Work(stream, "b", 10, 20, 1);
  const EventRow sync = profile.Call("cudaStreamSynchronize", 3, 60);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {StreamSync(sync, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: a -> cudaStreamSynchronize"));
}

TEST(DeviceDependenciesTest, ADeviceSyncWaitsForEveryStreamOfTheDevice) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Kernel(stream, "a", 1, 20, 30);
  profile.Kernel(stream, "b", 3, 30, 40);
  profile.Kernel(profile.AddStream(0, 8), "c", 5, 30, 35);
  profile.Kernel(profile.AddStream(1, 7), "elsewhere", 7, 30, 35);
  profile.Kernel(profile.AddStream(0, 9), "later", 50, 60, 70);
  const EventRow sync = profile.Call("cudaDeviceSynchronize", 9, 41);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {DeviceSync(sync, 0), DeviceSync(sync, 2), DeviceSync(sync, std::nullopt)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kDeviceSync),
              ElementsAre("device sync: b -> cudaDeviceSynchronize",
                          "device sync: c -> cudaDeviceSynchronize"));
}

TEST(DeviceDependenciesTest, TheOnlyDeviceNeedNotBeNamed) {
  Profile profile;
  profile.Kernel(profile.AddStream(3, 7), "a", 1, 20, 30);
  const EventRow sync = profile.Call("cudaDeviceSynchronize", 9, 41);
  const DeviceDependencies found =
      FindDeviceDependencies(profile.table(), {DeviceSync(sync, std::nullopt)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kDeviceSync),
              ElementsAre("device sync: a -> cudaDeviceSynchronize"));
}

TEST(DeviceDependenciesTest, ACopyThatBlocksEndsBeforeItsCall) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  profile.Call("cudaMemcpy", 10, 30, 1);
  profile.Work(stream, "to host", 15, 28, 1, EventCategory::kMemcpy);
  profile.Call("cudaMemcpy", 40, 45, 2);
  profile.Work(stream, "within the device", 42, 50, 2, EventCategory::kMemcpy);
  profile.Call("cudaMemcpyAsync", 60, 70, 3);
  profile.Work(stream, "pinned", 62, 65, 3, EventCategory::kMemcpy);
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), {});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kBlockingCopy),
              ElementsAre("blocking copy: to host -> cudaMemcpy"));
}

TEST(DeviceDependenciesTest, WorkWithoutACallFollowsItsPredecessor) {
  Profile profile;
  const TrackId stream = profile.AddStream(0, 7);
  const EventRow first_sync = profile.Call("first sync", 1, 60);
  profile.Work(stream, "launched before the profile", 5, 10, 999);
  profile.Kernel(stream, "a", 2, 10, 20);
  profile.Work(stream, "child", 20, 30, std::nullopt);
  const EventRow second_sync = profile.Call("second sync", 3, 60);
  profile.Kernel(stream, "b", 4, 30, 40);
  const DeviceDependencies found = FindDeviceDependencies(
      profile.table(), {StreamSync(first_sync, 7), StreamSync(second_sync, 7)});
  EXPECT_THAT(EdgeTexts(profile.table(), found, DeviceDependencyKind::kStreamSync),
              ElementsAre("stream sync: launched before the profile -> first sync",
                          "stream sync: child -> second sync"));
}

TEST(DeviceDependenciesTest, AnEmptyTableHasNone) {
  const DeviceDependencies found = FindDeviceDependencies(EventTable(), {});
  EXPECT_THAT(found.edges, IsEmpty());
  EXPECT_EQ(found.num_work, 0);
}

// Once an edge for each thread and stream: a trace of 3.4 MB took 3.3 GB.
TEST(DeviceDependenciesTest, WaitsForManyStreamsByManyThreadsDoNotMultiply) {
  constexpr int kCount = 2'000;
  Profile profile;
  for (int i = 0; i < kCount; ++i) {
    profile.Kernel(profile.AddStream(0, i), "k", 2 * i, 2 * i + 1, 2 * i + 2);
  }
  std::vector<SyncCall> syncs;
  for (int i = 0; i < kCount; ++i) {
    const int64_t start_ps = 4 * kCount + 2 * i;
    syncs.push_back(DeviceSync(
        profile.CallOfAnotherThread("cudaDeviceSynchronize", start_ps, start_ps + 1), 0));
  }
  const DeviceDependencies found = FindDeviceDependencies(profile.table(), syncs);
  // A million lookups and 32 for each of the 6,000 events: 596 times 2,000 streams. Beside these
  // edges there are the 2,000 launches.
  EXPECT_EQ(found.edges.size(), 596 * kCount + kCount);
}

}  // namespace
}  // namespace meridian
