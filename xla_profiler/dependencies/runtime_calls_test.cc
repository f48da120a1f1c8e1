#include "xla_profiler/dependencies/runtime_calls.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Optional;

TEST(SyncCallTest, KnowsTheCallsOfCudaAndHip) {
  for (const char* name : {"cudaStreamWaitEvent", "cuStreamWaitEvent", "hipStreamWaitEvent",
                           "cudaStreamWaitEvent_ptsz", "cudaStreamWaitEvent_v11010"}) {
    EXPECT_THAT(FindSyncKind(name), Optional(DeviceDependencyKind::kEventWait)) << name;
  }
  for (const char* name : {"cudaEventSynchronize", "cuEventQuery", "hipEventSynchronize"}) {
    EXPECT_THAT(FindSyncKind(name), Optional(DeviceDependencyKind::kEventSync)) << name;
  }
  for (const char* name : {"cudaStreamSynchronize", "cuStreamSynchronize_ptsz"}) {
    EXPECT_THAT(FindSyncKind(name), Optional(DeviceDependencyKind::kStreamSync)) << name;
  }
  for (const char* name : {"cudaDeviceSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize"}) {
    EXPECT_THAT(FindSyncKind(name), Optional(DeviceDependencyKind::kDeviceSync)) << name;
  }
  for (const char* name : {"", "cuda", "cudaEventRecord", "cudaEventQueryAll", "EventQuery",
                           "aten::cudaEventQuery", "cudaLaunchKernel"}) {
    EXPECT_EQ(FindSyncKind(name), std::nullopt) << name;
  }
}

TEST(SyncCallTest, CopiesBlockUnlessTheyAreAsyncOnTheHostsSide) {
  EXPECT_TRUE(IsBlockingCopy("cudaMemcpy", "Memcpy HtoD (Pageable -> Device)"));
  EXPECT_TRUE(IsBlockingCopy("cuMemcpyDtoH_v2", "MemcpyD2H"));
  EXPECT_TRUE(IsBlockingCopy("hipMemcpyWithStream", "CopyDeviceToHost"));
  EXPECT_TRUE(IsBlockingCopy("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)"));
  EXPECT_FALSE(IsBlockingCopy("cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)"));
  EXPECT_FALSE(IsBlockingCopy("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)"));
  EXPECT_FALSE(IsBlockingCopy("cuMemcpyDtoHAsync_v2", "MemcpyD2H"));
  EXPECT_FALSE(IsBlockingCopy("cudaGraphLaunch", "Memcpy DtoH (Device -> Pageable)"));
}

TEST(SyncCallTest, CallsAreHostRows) {
  EventTable table;
  const TrackId host = table.AddTrack({});
  Track stream;
  stream.kind = TrackKind::kDevice;
  const TrackId device = table.AddTrack(stream);
  const auto add = [&](TrackId track, const char* name) {
    EventRecord event;
    event.track = track;
    event.name = table.InternName(name);
    return table.Add(event);
  };
  add(host, "cudaLaunchKernel");
  const EventRow sync = add(host, "cudaDeviceSynchronize");
  add(device, "cudaDeviceSynchronize");
  const EventRow query = add(host, "cudaEventQuery");
  const std::vector<SyncCall> calls = FindSyncCalls(table);
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[0].kind, DeviceDependencyKind::kDeviceSync);
  EXPECT_THAT(calls[0].call, Optional(sync));
  EXPECT_EQ(calls[1].kind, DeviceDependencyKind::kEventSync);
  EXPECT_THAT(calls[1].call, Optional(query));
}

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
