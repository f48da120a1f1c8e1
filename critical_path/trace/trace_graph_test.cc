#include "critical_path/trace/trace_graph.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/trace/trace_window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kOtherThread = 200;

struct Built {
  PathGraph graph;
  CriticalPath path;
};

absl::StatusOr<Built> Build(const KinetoTrace& trace, const WindowChoice& choice = {},
                            const TraceGraphOptions& options = {}) {
  const std::string text = trace.Text();
  ASSIGN_OR_RETURN(const TraceJsonTable loaded, LoadTraceJson(text, "test"));
  const DeviceDependencies dependencies = FindTraceJsonDependencies(text, loaded.table);
  ASSIGN_OR_RETURN(const TraceWindow window, ChooseTraceWindow(loaded.table, dependencies, choice));
  Built built;
  RankEvents events;
  events.table = &loaded.table;
  events.positions = loaded.positions;
  events.dependencies = &dependencies;
  ASSIGN_OR_RETURN(built.graph, BuildTraceGraph(events, window, options));
  ASSIGN_OR_RETURN(built.path, FindLongestPath(built.graph));
  return built;
}

// "class event us" of the path's edges that take time.
std::vector<std::string> Steps(const Built& built) {
  const PathGraph& graph = built.graph;
  std::vector<std::string> steps;
  for (EdgeId id : built.path.edges) {
    const GraphEdge& edge = graph.edges[id];
    if (edge.weight_ps == 0) continue;
    steps.push_back(absl::StrCat(BoundByName(edge.bound_by), edge.event == kNoEvent ? "" : " ",
                                 edge.event == kNoEvent ? "" : graph.EventName(edge.event), " ",
                                 edge.weight_ps / kPsPerUs));
  }
  return steps;
}

std::vector<std::string> PathOf(const KinetoTrace& trace, const WindowChoice& choice = {},
                                const TraceGraphOptions& options = {}) {
  const absl::StatusOr<Built> built = Build(trace, choice, options);
  EXPECT_OK(built);
  return Steps(*built);
}

int64_t CountEdges(const PathGraph& graph, EdgeType type) {
  return std::count_if(graph.edges.begin(), graph.edges.end(),
                       [&](const GraphEdge& edge) { return edge.type == type; });
}

TEST(TraceGraphTest, WalksFromTheHostToTheDeviceAndBack) {
  KinetoTrace trace;
  trace.Op("op", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Call("cudaStreamSynchronize", 20, 55, 2);
  trace.Kernel("kernel", 30, 40, 7, 1);
  trace.Sync("Stream Sync", 20, 55, 7, 2);
  EXPECT_THAT(PathOf(trace), ElementsAre("cpu_bound op 10", "gpu_kernel_launch_overhead kernel 20",
                                         "gpu_compute_bound kernel 40",
                                         "cpu_bound cudaStreamSynchronize 5", "cpu_bound op 25"));
}

TEST(TraceGraphTest, ACallThatFindsNothingToWaitForEndsByItself) {
  KinetoTrace trace;
  trace.Op("op", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 30, 10, 7, 1);
  trace.Call("cudaStreamSynchronize", 50, 3, 2);
  trace.Sync("Stream Sync", 50, 3, 7, 2);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("cpu_bound op 10", "cpu_bound cudaLaunchKernel 5", "cpu_bound op 35",
                          "cpu_bound cudaStreamSynchronize 3", "cpu_bound op 47"));
}

TEST(TraceGraphTest, StreamsOfTwoDevicesAreNotChained) {
  KinetoTrace trace;
  trace.Op("op", 0, 10);
  trace.Call("cudaLaunchKernel", 1, 1, 1);
  trace.Call("cudaLaunchKernel", 2, 1, 2);
  trace.Kernel("first", 10, 100, 7, 1, /*device=*/0);
  trace.Kernel("second", 12, 100, 7, 2, /*device=*/1);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_EQ(CountEdges(built.graph, EdgeType::kKernelKernelDelay), 0);
  EXPECT_EQ(built.path.length_ps, 112 * kPsPerUs);
  EXPECT_THAT(Steps(built),
              ElementsAre("cpu_bound op 1", "cpu_bound cudaLaunchKernel 1",
                          "gpu_kernel_launch_overhead second 10", "gpu_compute_bound second 100"));
}

TEST(TraceGraphTest, ACudaGraphKeepsAllItsKernels) {
  KinetoTrace trace;
  trace.Call("cudaGraphLaunch", 0, 5, 1);
  trace.Kernel("k1", 10, 20, 7, 1);
  trace.Kernel("k2", 32, 28, 7, 1);
  trace.Kernel("k3", 61, 9, 7, 1);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_EQ(CountEdges(built.graph, EdgeType::kKernelLaunchDelay), 3);
  EXPECT_THAT(Steps(built),
              ElementsAre("gpu_kernel_launch_overhead k1 10", "gpu_compute_bound k1 20",
                          "gpu_kernel_kernel_overhead k2 2", "gpu_compute_bound k2 28",
                          "gpu_kernel_kernel_overhead k3 1", "gpu_compute_bound k3 9"));
}

TEST(TraceGraphTest, TheFirstKernelOfABurstHasItsLaunch) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Call("cudaLaunchKernel", 6, 5, 2);
  trace.Kernel("first", 20, 10, 7, 1);
  // Long after the first has ended.
  trace.Kernel("second", 2030, 10, 7, 2);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("gpu_kernel_launch_overhead first 20", "gpu_compute_bound first 10",
                          "device_not_in_trace second 2000", "gpu_compute_bound second 10"));
}

// Stream 24 waits for what streams 7 and 20 have done so far. The second wait is for the work that
// ends first.
KinetoTrace TwoWaits() {
  KinetoTrace trace;
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
  return trace;
}

TEST(TraceGraphTest, OfSeveralWaitsTheLastToEndCounts) {
  ASSERT_OK_AND_ASSIGN(const Built built, Build(TwoWaits()));
  EXPECT_EQ(CountEdges(built.graph, EdgeType::kSyncDependency), 2);
  EXPECT_THAT(Steps(built),
              ElementsAre("gpu_kernel_launch_overhead long 10", "gpu_compute_bound long 90",
                          "gpu_kernel_kernel_overhead last 5", "gpu_compute_bound last 15"));
}

TEST(TraceGraphTest, ABlockingCopyWaitsForTheDevice) {
  KinetoTrace trace;
  trace.Call("cudaMemcpy", 0, 150, 1);
  trace.Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 20, 120, 7, 1);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("gpu_kernel_launch_overhead Memcpy DtoH (Device -> Pageable) 20",
                          "gpu_compute_bound Memcpy DtoH (Device -> Pageable) 120",
                          "cpu_bound cudaMemcpy 10"));
}

TEST(TraceGraphTest, CallsThatOverlapOnTwoThreadsKeepTheirTime) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 30, 1);
  trace.Call("cudaLaunchKernel", 10, 30, 2, kOtherThread);
  trace.Kernel("a", 35, 1, 7, 1);
  trace.Kernel("b", 45, 1, 20, 2);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  std::vector<int64_t> calls_us;
  for (const GraphEdge& edge : built.graph.edges) {
    if (edge.bound_by == BoundBy::kCpu) calls_us.push_back(edge.weight_ps / kPsPerUs);
  }
  EXPECT_THAT(calls_us, ElementsAre(30, 30));
}

TEST(TraceGraphTest, ForwardAndBackwardThreadTakeTurns) {
  KinetoTrace trace;
  trace.Op("forward", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 20, 5, 7, 1);
  trace.Op("backward", 110, 90, kOtherThread);
  trace.Op("optimizer", 210, 40);
  EXPECT_THAT(
      PathOf(trace),
      ElementsAre("cpu_bound forward 10", "cpu_bound cudaLaunchKernel 5", "cpu_bound forward 85",
                  "host_gap 10", "cpu_bound backward 90", "host_gap 10", "cpu_bound optimizer 40"));
}

TEST(TraceGraphTest, AThreadThatOverlapsTheGapDoesNotExplainIt) {
  KinetoTrace trace;
  trace.Op("first", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 20, 5, 7, 1);
  trace.Op("beside", 50, 70, kOtherThread);
  trace.Op("second", 130, 40);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("cpu_bound first 10", "cpu_bound cudaLaunchKernel 5",
                          "cpu_bound first 85", "host_gap 30", "cpu_bound second 40"));
}

TEST(TraceGraphTest, ThreadsThatOnlyWatchAreNotFollowed) {
  KinetoTrace trace;
  trace.Op("first", 0, 50);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Kernel("kernel", 20, 5, 7, 1);
  trace.Call("cudaEventQuery", 60, 2, 8, kOtherThread);
  trace.Call("cudaEventQuery", 90, 5, 9, kOtherThread);
  trace.Op("second", 100, 50);
  // Not even to the end of the trace.
  trace.Call("cudaEventQuery", 160, 5, 10, kOtherThread);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("cpu_bound first 10", "cpu_bound cudaLaunchKernel 5",
                          "cpu_bound first 35", "host_gap 50", "cpu_bound second 50"));
}

TEST(TraceGraphTest, AnotherThreadBeginsWhereTheMainThreadIs) {
  KinetoTrace trace;
  trace.Op("main", 0, 500);
  trace.Op("inner", 150, 10);
  trace.Call("cudaLaunchKernel", 165, 5, 1, kOtherThread);
  trace.Kernel("kernel", 180, 5, 7, 1);
  trace.Op("worker", 200, 400, kOtherThread);
  // The worker's gap from 170 to 200 holds nothing of the main thread, its first one holds "inner".
  EXPECT_THAT(PathOf(trace),
              ElementsAre("cpu_bound main 150", "cpu_bound inner 10", "host_gap 5",
                          "cpu_bound cudaLaunchKernel 5", "host_gap 30", "cpu_bound worker 400"));
}

TEST(TraceGraphTest, CallsThatDoNotNestTakeTheirTime) {
  KinetoTrace trace;
  trace.Op("a", 0, 100);
  trace.Op("b", 50, 100);
  trace.Call("cudaLaunchKernel", 60, 5, 1);
  trace.Kernel("kernel", 70, 5, 7, 1);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_THAT(Steps(built),
              ElementsAre("cpu_bound a 50", "cpu_bound b 10", "cpu_bound cudaLaunchKernel 5",
                          "cpu_bound b 35", "cpu_bound b 50"));
}

TEST(TraceGraphTest, AWindowHasTheWorkItLaunchedAndWhatStillRuns) {
  KinetoTrace trace;
  trace.Annotation("step", 100, 100);
  trace.Call("cudaLaunchKernel", 60, 5, 1);
  trace.Kernel("before", 70, 60, 7, 1);
  trace.Op("crosses", 50, 100, kOtherThread);
  trace.Call("cudaLaunchKernel", 110, 5, 2);
  trace.Kernel("in the window", 130, 120, 7, 2);
  trace.Op("next step", 205, 500);
  trace.Call("cudaLaunchKernel", 210, 5, 3);
  trace.Kernel("after", 250, 120, 7, 3);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace, {"step", {0, 0}}));
  EXPECT_EQ(built.graph.window_end_ps - built.graph.window_start_ps, 150 * kPsPerUs);
  EXPECT_THAT(Steps(built),
              ElementsAre("gpu_compute_bound before 30", "gpu_compute_bound in the window 120"));
  std::map<std::string, int64_t> durations_us;
  for (GraphEventId id = 0; id < built.graph.events.size(); ++id) {
    durations_us[std::string(built.graph.EventName(id))] =
        built.graph.events[id].duration_ps / kPsPerUs;
  }
  EXPECT_THAT(durations_us, ElementsAre(std::make_pair("before", 30), std::make_pair("crosses", 50),
                                        std::make_pair("cudaLaunchKernel", 5),
                                        std::make_pair("in the window", 120)));
}

TEST(TraceGraphTest, AnAnnotationsEndIsReachedByItsThread) {
  KinetoTrace trace;
  trace.Annotation("step", 0, 100);
  trace.Op("op", 20, 30);
  trace.Call("cudaLaunchKernel", 25, 5, 1);
  trace.Kernel("kernel", 35, 50, 7, 1);
  trace.Op("other", 5, 91, kOtherThread);
  EXPECT_THAT(PathOf(trace, {"step", {0, 0}}),
              ElementsAre("host_gap 20", "cpu_bound op 5", "cpu_bound cudaLaunchKernel 5",
                          "cpu_bound op 20", "host_gap 50"));
}

TEST(TraceGraphTest, TimeInDataLoadersIsDataLoading) {
  KinetoTrace trace;
  trace.Annotation("enumerate(DataLoader)#next", 0, 100);
  trace.Op("aten::stack", 20, 30);
  trace.Op("op", 100, 50);
  trace.Call("cudaLaunchKernel", 110, 5, 1);
  trace.Kernel("kernel", 120, 5, 7, 1);
  TraceGraphOptions options;
  options.data_load_events = {"DataLoader"};
  EXPECT_THAT(
      PathOf(trace, {}, options),
      ElementsAre("data_loading enumerate(DataLoader)#next 20", "data_loading aten::stack 30",
                  "data_loading enumerate(DataLoader)#next 50", "cpu_bound op 10",
                  "cpu_bound cudaLaunchKernel 5", "cpu_bound op 35"));
}

TEST(TraceGraphTest, KernelsOfNcclCommunicate) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 10, 20, 7, 1);
  EXPECT_THAT(PathOf(trace),
              ElementsAre("gpu_kernel_launch_overhead ncclDevKernel_AllReduce_Sum_f32_RING_LL 10",
                          "gpu_communication_bound ncclDevKernel_AllReduce_Sum_f32_RING_LL 20"));
}

TEST(TraceGraphTest, WorkWithoutACallBeginsWithTheWindow) {
  KinetoTrace trace;
  trace.Op("op", 0, 10);
  trace.Kernel("kernel", 30, 10, 7, 99);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_THAT(Steps(built),
              ElementsAre("device_not_in_trace kernel 30", "gpu_compute_bound kernel 10"));
}

TEST(TraceGraphTest, AWindowEndsWithItsWorkAndNotWithAThreadBeside) {
  KinetoTrace trace;
  trace.Annotation("step", 0, 50);
  trace.Op("op", 0, 40);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  // Is cut where the kernel ends.
  trace.Op("beside", 20, 500, /*thread=*/55);
  trace.Kernel("kernel", 30, 90, 7, 1);
  EXPECT_THAT(PathOf(trace, {"step", {0, 0}}),
              ElementsAre("cpu_bound op 10", "gpu_kernel_launch_overhead kernel 20",
                          "gpu_compute_bound kernel 90"));
}

// Two kernels side by side, and a call that waits for both.
KinetoTrace SideBySide(double first_us, double second_us) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 1, 1);
  trace.Call("cudaLaunchKernel", 2, 1, 2);
  const double end_us = 10 + std::max(first_us, second_us) + 4;
  trace.Call("cudaDeviceSynchronize", 4, end_us - 4, 3);
  trace.Kernel("first", 10, first_us, 7, 1);
  trace.Kernel("second", 10, second_us, 20, 2);
  trace.Sync("Context Sync", 4, end_us - 4, -1, 3);
  return trace;
}

TEST(TraceGraphTest, SpeedingOneOpPastAnotherMovesThePath) {
  EXPECT_THAT(PathOf(SideBySide(100, 80)),
              ElementsAre("gpu_kernel_launch_overhead first 10", "gpu_compute_bound first 100",
                          "cpu_bound cudaDeviceSynchronize 4"));
  EXPECT_THAT(PathOf(SideBySide(60, 80)),
              ElementsAre("cpu_bound cudaLaunchKernel 1", "host_gap 1",
                          "gpu_kernel_launch_overhead second 8", "gpu_compute_bound second 80",
                          "cpu_bound cudaDeviceSynchronize 4"));
}

TEST(TraceGraphTest, AWindowWithoutWorkIsAnError) {
  KinetoTrace trace;
  trace.Annotation("idle", 0, 10);
  trace.Call("cudaLaunchKernel", 20, 5, 1);
  trace.Kernel("kernel", 30, 10, 7, 1);
  EXPECT_THAT(Build(trace, {"idle", {0, 0}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the window is empty")));
}

// Calls of several threads to several streams of two devices, with waits; operators nest or not.
KinetoTrace RandomTrace(std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  KinetoTrace trace;
  trace.Annotation("step", draw(50), 1 + draw(400));
  int correlation = 1;
  // When each stream has ended its work so far, and its last record.
  std::map<std::pair<int, int>, int> free_at;
  std::map<std::pair<int, int>, int> record;
  for (int thread = 1; thread <= 3; ++thread) {
    int now = draw(40);
    for (int i = 0; i < 12; ++i) {
      now += draw(3) == 0 ? draw(60) : draw(4);
      const std::pair<int, int> stream(draw(2), 7 + draw(2));
      int& stream_end = free_at[stream];
      switch (draw(7)) {
        case 0:
          trace.Op("op", now, draw(40), thread);
          break;
        case 1:
        case 2: {
          const int start = std::max(stream_end, now + draw(10)) + draw(5);
          const int duration = draw(30);
          trace.Call("cudaLaunchKernel", now, 1 + draw(5), correlation, thread);
          trace.Kernel(draw(3) == 0 ? "ncclDevKernel_x" : "kernel", start, duration, stream.second,
                       correlation, stream.first);
          stream_end = start + duration;
          ++correlation;
          break;
        }
        case 3: {
          const int end = std::max(now, stream_end) + draw(3);
          trace.Call("cudaStreamSynchronize", now, end - now, correlation, thread);
          trace.Sync("Stream Sync", now, end - now, stream.second, correlation, stream.first);
          now = draw(2) == 0 ? end : now;
          ++correlation;
          break;
        }
        case 4:
          trace.Call("cudaEventRecord", now, 1, correlation, thread);
          record[stream] = correlation++;
          break;
        case 5: {
          const std::pair<int, int> recorded(stream.first, 7 + draw(2));
          if (record.count(recorded) == 0) break;
          trace.Call("cudaStreamWaitEvent", now, 1, correlation, thread);
          trace.EventSync("Stream Wait Event", now, 1, stream.second, correlation, recorded.second,
                          record[recorded], stream.first);
          ++correlation;
          break;
        }
        default: {
          const int end = stream_end + draw(10);
          trace.Call("cudaMemcpy", now, std::max(1, end - now), correlation, thread);
          trace.Work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", std::max(now, stream_end),
                     draw(10), stream.second, correlation, stream.first);
          stream_end = std::max(now, stream_end) + 10;
          ++correlation;
        }
      }
    }
  }
  return trace;
}

// Checks what trace_graph.h promises about the graph, whatever the trace.
void ExpectLaws(const Built& built) {
  const PathGraph& graph = built.graph;
  std::set<std::pair<InstantId, InstantId>> joined;
  // Whether the time before an instant is explained.
  std::vector<bool> is_explained(graph.instants.size());
  is_explained[0] = true;
  for (const GraphEdge& edge : graph.edges) {
    const int64_t time_ps = graph.instants[edge.to].time_ps - graph.instants[edge.from].time_ps;
    EXPECT_GE(edge.weight_ps, 0);
    EXPECT_LE(edge.weight_ps, time_ps);
    EXPECT_TRUE(joined.emplace(edge.from, edge.to).second);
    if (edge.weight_ps > 0) {
      EXPECT_NE(edge.bound_by, BoundBy::kNothing);
    }
    if (edge.weight_ps == time_ps) is_explained[edge.to] = true;
  }
  EXPECT_EQ(std::count(is_explained.begin(), is_explained.end(), false), 0);
  EXPECT_EQ(built.path.length_ps, graph.window_end_ps - graph.window_start_ps);
  const std::vector<InstantId> instants = PathInstants(graph, built.path);
  EXPECT_EQ(instants.front(), 0);
  EXPECT_EQ(instants.back(), *graph.end_instant);
  int64_t sum_ps = 0;
  for (int64_t time_ps : BreakDown(graph, built.path).time_ps) sum_ps += time_ps;
  EXPECT_EQ(sum_ps, built.path.length_ps);
}

TEST(TraceGraphTest, ThePathSpansTheWindowOfAnyTrace) {
  std::mt19937 random(42);
  int built_traces = 0, windows = 0;
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const KinetoTrace trace = RandomTrace(random);
    for (const char* annotation : {"", "step"}) {
      const absl::StatusOr<Built> built = Build(trace, {annotation, {0, 0}});
      // Work may be missing altogether, and windows may be empty.
      if (built.status().code() == absl::StatusCode::kFailedPrecondition) continue;
      ASSERT_OK(built);
      ExpectLaws(*built);
      ++(*annotation == '\0' ? built_traces : windows);
    }
  }
  EXPECT_GT(built_traces, 280);
  EXPECT_GT(windows, 250);
}

// A thread that asks every 100 us whether a collective is over has no part in the graph: with its
// pauses the run could not get shorter.
TEST(TraceGraphTest, AThreadThatOnlyAsksBoundsNothing) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 10, 1);
  trace.Kernel("k", 20, 400, 7, 1);
  for (int i = 0; i < 5; ++i) trace.Call("cudaEventQuery", 100 * i + 50, 1, 10 + i, kOtherThread);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_EQ(built.graph.events.size(), 2);
  EXPECT_EQ(built.path.length_ps, 420 * kPsPerUs);
}

// The second kernel starts 5 us before the first has ended, and waited for it all the same.
TEST(TraceGraphTest, AnEarlyStartIsTakenBack) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 10, 1);
  trace.Call("cudaLaunchKernel", 10, 10, 2);
  trace.Kernel("first", 20, 400, 7, 1);
  trace.Kernel("second", 415, 100, 7, 2);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  EXPECT_THAT(Steps(built),
              ElementsAre("gpu_kernel_launch_overhead first 20", "gpu_compute_bound first 400",
                          "gpu_compute_bound second 95"));
}

// The first kernel was launched before the profile began: it belongs to no step, and what started
// when it had ended waited for it.
TEST(TraceGraphTest, WorkLaunchedBeforeTheProfileBelongsToNoStep) {
  KinetoTrace trace;
  trace.Annotation("ProfilerStep#3", 0, 30);
  trace.Call("cudaLaunchKernel", 5, 10, 1);
  trace.Call("cudaLaunchKernel", 16, 4, 2);
  trace.Kernel("earlier", 10, 300, 7, 99);
  trace.Kernel("earlier too", 312, 100, 8, 98);
  trace.Kernel("own", 414, 100, 7, 1);
  trace.Kernel("own too", 520, 10, 8, 2);
  ASSERT_OK_AND_ASSIGN(const Built built, Build(trace));
  const PathGraph& graph = built.graph;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    EXPECT_EQ(graph.events[id].step == kNoStep, absl::StartsWith(graph.EventName(id), "earlier"))
        << graph.EventName(id);
  }
  EXPECT_EQ(BreakDown(graph, built.path).Of(BoundBy::kNotInTrace), 0);
}

}  // namespace
}  // namespace meridian
