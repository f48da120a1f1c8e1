#include "xla_profiler/dependencies/inferred_waits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/dependency_text.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "kind: from -> to".
std::vector<std::string> Infer(const KinetoTrace& trace) {
  const std::string text = trace.Text();
  const absl::StatusOr<TraceJsonTable> loaded = LoadTraceJson(text, "test");
  EXPECT_OK(loaded);
  const EventTable& table = loaded->table;
  const std::vector<SyncCall> calls = ReadTraceJsonSyncCalls(text, table);
  const DeviceDependencies known = FindDeviceDependencies(table, calls);
  DeviceDependencies all = known;
  AddInferredWaits(table, calls, &all);
  EXPECT_EQ(all.edges.size(), known.edges.size() + all.inferred);
  std::vector<std::string> texts;
  for (const DeviceDependency& edge : all.edges) {
    const bool is_known =
        std::find(known.edges.begin(), known.edges.end(), edge) != known.edges.end();
    if (is_known) continue;
    texts.push_back(absl::StrCat(DeviceDependencyKindName(edge.kind), ": ", table.name(edge.from),
                                 " -> ", table.name(edge.to)));
  }
  return texts;
}

// A collective until 100 on stream 16, and a copy on stream 7, launched until 25.
KinetoTrace CopyBeside(double copy_start_us) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaMemcpyAsync", 20, 5, 3);
  trace.Kernel("collective", 8, 92, 16, 1);
  trace.Work("gpu_memcpy", "copy", copy_start_us, 4, 7, 3);
  return trace;
}

// The same with a call that waits before the copy.
KinetoTrace WaitingCopy(double copy_start_us) {
  KinetoTrace trace = CopyBeside(copy_start_us);
  trace.Call("cudaStreamWaitEvent", 10, 1, 2);
  return trace;
}

TEST(InferredWaitsTest, WorkAfterAWaitHasWaitedForTheOtherStream) {
  EXPECT_THAT(Infer(WaitingCopy(103)), ElementsAre("event wait: collective -> copy"));
}

TEST(InferredWaitsTest, WorkThatStartsBesideHasNotWaited) {
  EXPECT_THAT(Infer(WaitingCopy(30)), IsEmpty());
}

TEST(InferredWaitsTest, WorkThatStartsLateHasWaitedForWhatHasJustEnded) {
  EXPECT_THAT(Infer(CopyBeside(103)), ElementsAre("inferred wait: collective -> copy"));
}

TEST(InferredWaitsTest, WorkThatStartsRightAfterItsLaunchHasNotWaited) {
  EXPECT_THAT(Infer(CopyBeside(45)), IsEmpty());
  KinetoTrace trace = CopyBeside(103);
  trace.Call("cudaLaunchKernel", 84, 2, 4);
  trace.Kernel("launched late", 101, 3, 8, 4);
  EXPECT_THAT(Infer(trace), ElementsAre("inferred wait: collective -> copy"));
}

TEST(InferredWaitsTest, WhatEndedLongAgoWasNotAwaited) {
  EXPECT_THAT(Infer(CopyBeside(125)), IsEmpty());
}

TEST(InferredWaitsTest, TheOwnStreamMayHaveBeenBusyLonger) {
  KinetoTrace trace = WaitingCopy(113);
  trace.Call("cudaLaunchKernel", 6, 2, 4);
  trace.Kernel("before on the stream", 9, 103, 7, 4);
  EXPECT_THAT(Infer(trace), IsEmpty());
}

TEST(InferredWaitsTest, OtherDevicesAreNotAwaited) {
  KinetoTrace trace = WaitingCopy(103);
  trace.Call("cudaLaunchKernel", 6, 2, 4);
  trace.Kernel("of another device", 9, 93, 16, 4, /*device=*/1);
  EXPECT_THAT(Infer(trace), ElementsAre("event wait: collective -> copy"));
}

TEST(InferredWaitsTest, AKnownStreamIsRespected) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaStreamWaitEvent", 10, 1, 2);
  trace.Call("cudaLaunchKernel", 12, 2, 3);
  trace.Call("cudaLaunchKernel", 16, 2, 4);
  trace.Kernel("collective", 8, 92, 16, 1);
  trace.Kernel("of stream 20", 102, 4, 20, 3);
  trace.Kernel("of stream 24", 103, 4, 24, 4);
  // The record is not in the trace.
  trace.EventSync("Stream Wait Event", 10, 1, 24, 2, 16, 99);
  EXPECT_THAT(Infer(trace), ElementsAre("inferred wait: collective -> of stream 20",
                                        "event wait: collective -> of stream 24"));
}

TEST(InferredWaitsTest, ACallReturnsAfterWhatItWaitedFor) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaEventSynchronize", 10, 50, 2);
  trace.Kernel("kernel", 8, 50, 7, 1);
  trace.Call("cudaStreamSynchronize", 70, 5, 3);
  trace.Call("cudaEventQuery", 20, 50, 4, /*thread=*/200);
  EXPECT_THAT(Infer(trace), ElementsAre("event sync: kernel -> cudaEventSynchronize"));
}

TEST(InferredWaitsTest, WhatIsKnownStays) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 5, 2, 2);
  trace.Call("cudaStreamSynchronize", 10, 60, 3);
  trace.Kernel("kernel", 8, 50, 7, 1);
  trace.Kernel("of another stream", 8, 55, 20, 2);
  trace.Sync("Stream Sync", 10, 60, 7, 3);
  EXPECT_THAT(Infer(trace), IsEmpty());
}

}  // namespace
}  // namespace meridian
