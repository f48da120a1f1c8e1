#include "critical_path/what_if/what_if_graph.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/what_if/testing/all_reduce_job.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::Not;

// "type from -> to us class", with S and E for start and end.
std::vector<std::string> EdgesOf(const WhatIfGraph& edited) {
  const PathGraph& graph = edited.graph;
  const auto name = [&](InstantId id) {
    const Instant& instant = graph.instants[id];
    if (instant.event == kNoEvent) return std::string("window");
    return absl::StrCat(graph.EventName(instant.event), instant.is_start ? " S" : " E");
  };
  std::vector<std::string> edges;
  for (const GraphEdge& edge : graph.edges) {
    edges.push_back(absl::StrCat(EdgeTypeName(edge.type), " ", name(edge.from), " -> ",
                                 name(edge.to), " ", edge.weight_ps / 1'000'000, " ",
                                 BoundByName(edge.bound_by)));
  }
  return edges;
}

// Kernels k1 10 .. 50, k2 53 .. 93, k3 120 .. 150 on one stream, launched at 0, 5 and 100; the host
// waits for k3 until 155.
WhatIfGraph ThreeKernels() {
  KinetoTrace trace;
  trace.Call("launch1", 0, 5, 1);
  trace.Call("launch2", 5, 5, 2);
  trace.Call("launch3", 100, 5, 3);
  trace.Call("cudaDeviceSynchronize", 110, 45, 4);
  trace.Kernel("k1", 10, 40, 7, 1);
  trace.Kernel("k2", 53, 40, 7, 2);
  trace.Kernel("k3", 120, 30, 7, 3);
  trace.Sync("Context Sync", 110, 45, -1, 4);
  const MeasuredGraph measured = MeasureTrace(trace);
  return MakeWhatIfGraph(measured.graph, measured.path);
}

TEST(WhatIfGraphTest, FillsInDelaysThatDidNotShow) {
  const std::vector<std::string> edges = EdgesOf(ThreeKernels());
  // Launches show 10 and 20 us, gaps between kernels 3 us.
  EXPECT_THAT(edges,
              Contains("kernel_launch_delay launch2 S -> k2 S 10 gpu_kernel_launch_overhead"));
  EXPECT_THAT(edges, Contains("kernel_kernel_delay k2 E -> k3 S 3 gpu_kernel_kernel_overhead"));
  // The call returns 5 us after what it waits for; were that nothing, 5 us after its start.
  EXPECT_THAT(edges, Contains("sync_dependency k3 E -> cudaDeviceSynchronize E 5 cpu_bound"));
  EXPECT_THAT(edges, Contains("operator cudaDeviceSynchronize S -> cudaDeviceSynchronize E 5 "
                              "cpu_bound"));
}

TEST(WhatIfGraphTest, HiddenDelaysHaveRoom) {
  KinetoTrace trace;
  trace.Call("launch1", 0, 5, 1);
  // Launched 4 us before it starts, behind k1.
  trace.Call("launch2", 46, 2, 2);
  trace.Kernel("k1", 10, 39, 7, 1);
  trace.Kernel("k2", 50, 40, 7, 2);
  const MeasuredGraph measured = MeasureTrace(trace);
  EXPECT_THAT(EdgesOf(MakeWhatIfGraph(measured.graph, measured.path)),
              Contains("kernel_launch_delay launch2 S -> k2 S 4 gpu_kernel_launch_overhead"));
}

// No device takes 200 us to start a kernel: k1 waited for something else, k2 need not.
TEST(WhatIfGraphTest, WaitingForWhatIsNotInTheTraceIsNoDelay) {
  KinetoTrace trace;
  trace.Call("launch1", 0, 5, 1);
  trace.Call("launch2", 5, 5, 2);
  trace.Kernel("k1", 200, 40, 7, 1);
  trace.Kernel("k2", 243, 40, 7, 2);
  const MeasuredGraph measured = MeasureTrace(trace);
  EXPECT_THAT(EdgesOf(MakeWhatIfGraph(measured.graph, measured.path)),
              Contains("kernel_launch_delay launch2 S -> k2 S 0 gpu_kernel_launch_overhead"));
}

TEST(WhatIfGraphTest, RanksTransferAfterTheyMet) {
  const MeasuredGraph measured = MeasureGraph(AllReduceJob({{5, 10, 3}, {9, 30, 5}}));
  const WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  const std::vector<std::string> edges = EdgesOf(edited);
  EXPECT_EQ(std::count(edges.begin(), edges.end(),
                       "operator all-reduce S -> all-reduce E 20 gpu_communication_bound"),
            2);
  // The meeting is no start of an event of its own.
  EXPECT_EQ(edited.start_instants, (std::vector<InstantId>{1, 3, 5, 7}));
}

TEST(WhatIfGraphTest, HtaGraphsStayAsTheyAre) {
  const MeasuredGraph measured = MeasureGraph(AllReduceJob({{5, 10, 3}, {9, 30, 5}}));
  const WhatIfGraph edited = MakeHtaWhatIfGraph(measured.graph, measured.path);
  EXPECT_THAT(EdgesOf(edited),
              Not(Contains("operator all-reduce S -> all-reduce E 20 gpu_communication_bound")));
}

TEST(SaturatingSumTest, StopsAtTheGreatestTime) {
  EXPECT_EQ(SaturatingSum(3, 4), 7);
  EXPECT_EQ(SaturatingSum(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSum(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(SaturatingSum(INT64_MAX, INT64_MAX), INT64_MAX);
}

}  // namespace
}  // namespace meridian
