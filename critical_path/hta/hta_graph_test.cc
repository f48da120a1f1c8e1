// What HTA makes of small traces, worked by hand after its rules; the mistakes are HTA's.
#include "critical_path/hta/hta_graph.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr int64_t kOtherThread = 200;

// Event 0 is no event to HTA when another one refers to it.
KinetoTrace NewTrace() {
  KinetoTrace trace;
  trace.Raw(R"({"ph": "M", "name": "process_name", "pid": 1, "ts": 0})");
  return trace;
}

absl::StatusOr<PathGraph> Build(const KinetoTrace& trace, const HtaGraphOptions& options = {}) {
  ASSIGN_OR_RETURN(const HtaFrame frame, LoadHtaFrame(trace.Text(), "test"));
  ASSIGN_OR_RETURN(const HtaWindow window, ChooseHtaWindow(frame, {}));
  return BuildHtaGraph(frame, window, HtaLaunches(frame), options);
}

std::string InstantText(const PathGraph& graph, InstantId id) {
  return absl::StrCat(graph.instants[id].is_start ? "" : "/",
                      graph.EventName(graph.instants[id].event));
}

// "from to type us" of each edge; an end is written "/name".
std::vector<std::string> Edges(const PathGraph& graph) {
  std::vector<std::string> edges;
  for (const GraphEdge& edge : graph.edges) {
    edges.push_back(absl::StrCat(InstantText(graph, edge.from), " ", InstantText(graph, edge.to),
                                 " ", EdgeTypeName(edge.type), " ", edge.weight_ps / kPsPerUs));
  }
  return edges;
}

std::vector<std::string> EdgesOf(const KinetoTrace& trace, const HtaGraphOptions& options = {}) {
  const absl::StatusOr<PathGraph> graph = Build(trace, options);
  EXPECT_OK(graph);
  return Edges(*graph);
}

int64_t LengthUs(const KinetoTrace& trace) {
  const absl::StatusOr<PathGraph> graph = Build(trace);
  EXPECT_OK(graph);
  const absl::StatusOr<CriticalPath> path = FindLongestPath(*graph);
  EXPECT_OK(path);
  return path->length_ps / kPsPerUs;
}

TEST(HtaGraphTest, JoinsOperatorsLaunchesAndKernels) {
  KinetoTrace trace = NewTrace();
  trace.Op("op", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 30, 40, 7, 1);
  trace.Op("next", 120, 10);
  EXPECT_THAT(
      EdgesOf(trace),
      ElementsAre("cudaLaunchKernel /cudaLaunchKernel operator 5",
                  "op cudaLaunchKernel operator 10", "/cudaLaunchKernel /op operator 85",
                  "/op next dependency 0", "next /next operator 10", "kernel /kernel operator 40",
                  "cudaLaunchKernel kernel kernel_launch_delay 20"));
}

TEST(HtaGraphTest, ChainsEqualStreamsOfTwoDevices) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 2, 1);
  trace.Call("cudaLaunchKernel", 14, 2, 2);
  trace.Kernel("first", 10, 100, 7, 1, /*device=*/0);
  trace.Kernel("second", 20, 100, 7, 2, /*device=*/1);
  // The second starts 90 us before the first ends: a negative delay that counts as none.
  EXPECT_THAT(EdgesOf(trace), Contains("/first second kernel_kernel_delay 0"));
  EXPECT_EQ(LengthUs(trace), 10 + 100 + 100);
}

TEST(HtaGraphTest, KnowsOnlyTheLastKernelOfACudaGraph) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 2, 1);
  trace.Call("cudaGraphLaunch", 4, 2, 2);
  trace.Kernel("before", 10, 5, 7, 1);
  trace.Kernel("k1", 20, 30, 7, 2);
  trace.Kernel("k2", 50, 30, 7, 2);
  trace.Kernel("k3", 80, 30, 7, 2);
  EXPECT_THAT(EdgesOf(trace), Contains("/before k3 kernel_kernel_delay 65"));
  EXPECT_THAT(EdgesOf(trace), Not(Contains(HasSubstr("k2"))));
}

KinetoTrace Burst() {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 2, 1);
  trace.Call("cudaLaunchKernel", 4, 2, 2);
  trace.Kernel("first", 10, 5, 7, 1);
  trace.Kernel("second", 1516, 5, 7, 2);
  return trace;
}

TEST(HtaGraphTest, KernelsOfABurstHaveNoLaunchAndLongGapsNoEdge) {
  // The gap is 1501 us.
  EXPECT_THAT(EdgesOf(Burst()),
              ElementsAre("cudaLaunchKernel /cudaLaunchKernel operator 2",
                          "cudaLaunchKernel /cudaLaunchKernel operator 2",
                          "/cudaLaunchKernel cudaLaunchKernel dependency 0",
                          "first /first operator 5", "second /second operator 5"));
}

TEST(HtaGraphTest, AddsLaunchEdgesWithoutTimeWhenAsked) {
  HtaGraphOptions options;
  options.zero_weight_launch_edges = true;
  const std::vector<std::string> edges = EdgesOf(Burst(), options);
  EXPECT_EQ(edges.size(), 7u);
  EXPECT_THAT(edges, Contains("cudaLaunchKernel first kernel_launch_delay 0"));
  EXPECT_THAT(edges, Contains("cudaLaunchKernel second kernel_launch_delay 0"));
}

TEST(HtaGraphTest, KeepsTheLastOfTwoWaits) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Call("cudaEventRecord", 2, 1, 11);
  trace.Call("cudaLaunchKernel", 4, 1, 2);
  trace.Call("cudaEventRecord", 6, 1, 12);
  trace.Call("cudaStreamWaitEvent", 8, 1, 21);
  trace.Call("cudaStreamWaitEvent", 10, 1, 22);
  trace.Call("cudaLaunchKernel", 12, 1, 3);
  trace.Kernel("long", 10, 90, 7, 1);
  trace.Kernel("short", 10, 70, 20, 2);
  trace.Kernel("last", 105, 15, 24, 3);
  trace.EventSync("Stream Wait Event", 8, 1, 24, 21, 7, 11);
  trace.EventSync("Stream Wait Event", 10, 1, 24, 22, 20, 12);
  const std::vector<std::string> edges = EdgesOf(trace);
  EXPECT_THAT(edges, Contains("/short last sync_dependency 0"));
  EXPECT_THAT(edges, Not(Contains("/long last sync_dependency 0")));
  // The work that is waited for ended after the launch, so that this has no edge.
  EXPECT_THAT(edges, Not(Contains(HasSubstr("last kernel_launch_delay"))));
}

TEST(HtaGraphTest, SynchronizingCallsWaitForTheLastWork) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Call("cudaLaunchKernel", 4, 1, 2);
  trace.Call("cudaStreamSynchronize", 20, 80, 3);
  trace.Call("cudaDeviceSynchronize", 110, 5, 4);
  trace.Kernel("a", 10, 80, 7, 1);
  trace.Kernel("b", 12, 70, 20, 2);
  trace.Sync("Stream Sync", 20, 78, 7, 3);
  trace.Sync("Context Sync", 110, 5, -1, 4);
  const std::vector<std::string> edges = EdgesOf(trace);
  // The time of such calls is not their own.
  EXPECT_THAT(edges, Contains("cudaStreamSynchronize /cudaStreamSynchronize operator 0"));
  EXPECT_THAT(edges, Contains("/a /cudaStreamSynchronize sync_dependency 0"));
  EXPECT_THAT(edges, Not(Contains("/b /cudaStreamSynchronize sync_dependency 0")));
  EXPECT_THAT(edges, Contains("/a /cudaDeviceSynchronize sync_dependency 0"));
  EXPECT_THAT(edges, Contains("/b /cudaDeviceSynchronize sync_dependency 0"));
}

// An edge for each wait and stream: 1,300 of both are 1.69 million, where 5,200 events allow for
// 1.17 million.
TEST(HtaGraphTest, WaitsForManyStreamsDoNotMultiply) {
  constexpr int kCount = 1'300;
  KinetoTrace trace = NewTrace();
  trace.Op("op", 0, 10 * kCount);
  for (int i = 0; i < kCount; ++i) {
    trace.Call("cudaLaunchKernel", 2 * i, 1, i + 1);
    trace.Kernel("k", 2 * i + 1, 1, i + 7, i + 1);
  }
  for (int i = 0; i < kCount; ++i) {
    const int start = 3 * kCount + 2 * i;
    trace.Call("cudaDeviceSynchronize", start, 1, kCount + i + 1);
    trace.Sync("Context Sync", start, 1, -1, kCount + i + 1);
  }
  EXPECT_THAT(Build(trace), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("try without --hta_compatible")));
}

TEST(HtaGraphTest, EventSyncsWaitForWhatWasRecorded) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Call("cudaEventRecord", 2, 1, 11);
  trace.Call("cudaLaunchKernel", 4, 1, 2);
  trace.Call("cudaEventSynchronize", 8, 40, 21);
  trace.Kernel("recorded", 10, 30, 7, 1);
  trace.Kernel("later", 40, 30, 7, 2);
  trace.EventSync("Event Sync", 8, 40, 7, 21, 7, 11);
  EXPECT_THAT(EdgesOf(trace), Contains("/recorded /cudaEventSynchronize sync_dependency 0"));
}

TEST(HtaGraphTest, CallsThatOverlapLoseTime) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 30, 1);
  trace.Call("cudaMemcpyAsync", 10, 50, 2, kOtherThread);
  trace.Kernel("kernel", 35, 5, 7, 1);
  trace.Work("gpu_memcpy", "Memcpy HtoD", 70, 5, 20, 2);
  // Both starts lead to the first end, which gives the lock to the second.
  EXPECT_THAT(EdgesOf(trace),
              UnorderedElementsAre("cudaMemcpyAsync /cudaLaunchKernel dependency 0",
                                   "cudaLaunchKernel /cudaLaunchKernel operator 30",
                                   "/cudaLaunchKernel /cudaMemcpyAsync dependency 0",
                                   "kernel /kernel operator 5",
                                   "cudaLaunchKernel kernel kernel_launch_delay 35",
                                   "Memcpy HtoD /Memcpy HtoD operator 5",
                                   "cudaMemcpyAsync Memcpy HtoD kernel_launch_delay 60"));
}

TEST(HtaGraphTest, AnEndClosesWhateverIsInnermost) {
  KinetoTrace trace = NewTrace();
  trace.Op("A", 0, 10);
  trace.Op("B", 5, 10);
  trace.Call("cudaLaunchKernel", 20, 5, 1);
  trace.Kernel("kernel", 30, 5, 7, 1);
  // At 10, where A ends, it is B that is closed, at its own end; A follows, back in time.
  const std::vector<std::string> edges = EdgesOf(trace);
  EXPECT_THAT(edges, Contains("A B operator 5"));
  EXPECT_THAT(edges, Contains("B /B operator 10"));
  EXPECT_THAT(edges, Contains("/B /A operator 0"));
  EXPECT_THAT(edges, Contains("/A cudaLaunchKernel dependency 0"));
}

TEST(HtaGraphTest, BlockingCopiesTakeNoTime) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Kernel("kernel", 5, 1, 7, 1);
  trace.Call("cudaMemcpy", 10, 150, 2);
  trace.Work("gpu_memcpy", "Memcpy DtoH", 20, 130, 7, 2);
  EXPECT_THAT(EdgesOf(trace), Contains("cudaMemcpy /cudaMemcpy operator 0"));
  EXPECT_THAT(EdgesOf(trace), Not(Contains(HasSubstr("sync_dependency"))));
}

TEST(HtaGraphTest, BackwardJoinsTheForwardThread) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Kernel("kernel", 5, 1, 7, 1);
  trace.Op("forward", 10, 10);
  trace.Op("autograd", 30, 10, kOtherThread);
  EXPECT_THAT(EdgesOf(trace), Contains("/forward autograd dependency 0"));
}

TEST(HtaGraphTest, TimeIsBookedOnWhoeverIsRunning) {
  KinetoTrace trace = NewTrace();
  trace.Annotation("range", 0, 200);
  trace.Op("outer", 10, 100);
  trace.Op("first", 20, 10);
  trace.Op("second", 50, 10);
  trace.Call("cudaLaunchKernel", 150, 1, 1);
  trace.Kernel("kernel", 160, 1, 7, 1);
  trace.Kernel("ncclKernel_x", 165, 1, 7, 2);
  trace.Call("cudaLaunchKernel", 152, 1, 2);
  ASSERT_OK_AND_ASSIGN(const PathGraph graph, Build(trace));
  std::vector<std::string> booked;
  for (const GraphEdge& edge : graph.edges) {
    if (edge.event == kNoEvent) continue;
    booked.push_back(absl::StrCat(InstantText(graph, edge.from), " ", InstantText(graph, edge.to),
                                  ": ", graph.EventName(edge.event), " ",
                                  BoundByName(edge.bound_by)));
  }
  EXPECT_THAT(booked, UnorderedElementsAre(
                          "outer first: outer cpu_bound", "first /first: first cpu_bound",
                          "/first second: outer cpu_bound", "second /second: second cpu_bound",
                          "/second /outer: outer cpu_bound",
                          "cudaLaunchKernel /cudaLaunchKernel: cudaLaunchKernel cpu_bound",
                          "cudaLaunchKernel /cudaLaunchKernel: cudaLaunchKernel cpu_bound",
                          "kernel /kernel: kernel gpu_compute_bound",
                          "ncclKernel_x /ncclKernel_x: ncclKernel_x gpu_communication_bound",
                          "/kernel ncclKernel_x: kernel gpu_kernel_kernel_overhead"));
}

TEST(HtaGraphTest, DataLoadersHaveInstants) {
  KinetoTrace trace = NewTrace();
  trace.Annotation("DataLoader.next", 0, 20);
  trace.Call("cudaLaunchKernel", 30, 1, 1);
  trace.Kernel("kernel", 35, 1, 7, 1);
  EXPECT_THAT(EdgesOf(trace), Not(Contains(HasSubstr("DataLoader"))));
  HtaGraphOptions options;
  options.data_load_events = {"DataLoader"};
  ASSERT_OK_AND_ASSIGN(const PathGraph graph, Build(trace, options));
  EXPECT_THAT(Edges(graph), Contains("DataLoader.next /DataLoader.next operator 20"));
  for (const GraphEdge& edge : graph.edges) {
    if (edge.event != kNoEvent && graph.EventName(edge.event) == "DataLoader.next") {
      EXPECT_EQ(edge.bound_by, BoundBy::kDataLoading);
    }
  }
}

TEST(HtaGraphTest, AWaitOfAnotherCategoryIsNoWork) {
  KinetoTrace trace = NewTrace();
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Kernel("kernel", 5, 1, 7, 1);
  trace.Work("other_sync", "Context Sync", 10, 1, -1, 2);
  trace.Call("cudaDeviceSynchronize", 10, 2, 2);
  EXPECT_THAT(EdgesOf(trace), Not(Contains(HasSubstr("Context Sync"))));
}

TEST(HtaGraphTest, FailsWhereHtaFails) {
  KinetoTrace graphs_only = NewTrace();
  graphs_only.Call("cudaGraphLaunch", 0, 2, 1);
  graphs_only.Kernel("k", 10, 2, 7, 1);
  EXPECT_THAT(Build(graphs_only),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no kernel was launched")));

  KinetoTrace no_runtime = NewTrace();
  no_runtime.Host("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 0, 2,
                  kMainThread, R"("correlation": 1)");
  no_runtime.Kernel("k", 10, 2, 7, 1);
  EXPECT_THAT(Build(no_runtime), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("no operator and no call")));

  KinetoTrace own_stream = NewTrace();
  own_stream.Call("cudaLaunchKernel", 0, 1, 1);
  own_stream.Call("cudaEventRecord", 2, 1, 11);
  own_stream.Call("cudaStreamWaitEvent", 8, 1, 21);
  own_stream.Call("cudaLaunchKernel", 12, 1, 2);
  own_stream.Kernel("a", 10, 90, 7, 1);
  own_stream.Kernel("b", 105, 15, 7, 2);
  own_stream.EventSync("Stream Wait Event", 8, 1, 7, 21, 7, 11);
  EXPECT_THAT(Build(own_stream),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("its own stream 7")));
}

}  // namespace
}  // namespace meridian
