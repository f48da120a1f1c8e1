#include "critical_path/job/execution_job.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/rank_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

constexpr Resource kThread = {0, ResourceKind::kHostThread, 3};
constexpr Resource kStream = {0, ResourceKind::kStream, 7};
constexpr Resource kOtherStream = {0, ResourceKind::kStream, 8};

// Node by node; times in ns.
class ExecutionMaker {
 public:
  NodeIndex Add(const std::string& name, const Resource& resource, int64_t start_ns, int64_t end_ns,
                BoundBy bound_by = BoundBy::kGpuCompute) {
    ExecutionNode node;
    node.id = timed_.size() + 1;
    node.name = name;
    node.resource = builder_.AddResource(resource);
    TimedNode timed;
    timed.start_ns = start_ns;
    timed.end_ns = end_ns;
    timed.bound_by = bound_by;
    timed_.push_back(timed);
    return builder_.AddNode(node);
  }

  void Depend(NodeIndex node, NodeIndex source, EdgeKind kind) {
    builder_.AddDependency(node, source, kind);
  }

  TimedNode& timed(NodeIndex node) { return timed_[node]; }

  TimedExecution Make() && {
    TimedExecution execution;
    execution.graph = std::move(builder_).Build();
    execution.nodes = std::move(timed_);
    return execution;
  }

 private:
  ExecutionGraphBuilder builder_;
  std::vector<TimedNode> timed_;
};

// The path of all ranks as "rank name spent on ns", one for each edge with time.
std::vector<std::string> Path(const TimedExecution& execution,
                              const std::map<int64_t, RankWindow>& windows = {}) {
  absl::StatusOr<JobGraph> job = BuildExecutionJob(execution, windows);
  EXPECT_THAT(job, IsOk());
  const absl::StatusOr<JoinedGraph> joined = JoinRanks(*std::move(job));
  EXPECT_THAT(joined, IsOk());
  const PathGraph& graph = joined->graph;
  const absl::StatusOr<CriticalPath> path = FindLongestPath(graph);
  EXPECT_THAT(path, IsOk());
  EXPECT_EQ(path->length_ps, graph.window_end_ps - graph.window_start_ps);
  std::vector<std::string> out;
  for (const EdgeId id : path->edges) {
    const GraphEdge& edge = graph.edges[id];
    if (edge.weight_ps == 0) continue;
    const std::string name =
        edge.event == kNoEvent ? "-" : std::string(graph.EventName(edge.event));
    out.push_back(absl::StrCat(name, " ", std::string(BoundByName(edge.bound_by)), " ",
                               edge.weight_ps / 1000));
  }
  return out;
}

TEST(ExecutionJobTest, WorkStartsAfterTheLastThatItWaitedFor) {
  ExecutionMaker maker;
  const NodeIndex call = maker.Add("launch a", kThread, 100, 110, BoundBy::kCpu);
  const NodeIndex gap = maker.Add("host_gap", kThread, 110, 150, BoundBy::kHostGap);
  const NodeIndex next = maker.Add("launch b", kThread, 150, 160, BoundBy::kCpu);
  const NodeIndex a = maker.Add("a", kStream, 120, 300);
  const NodeIndex b = maker.Add("b", kStream, 305, 400);
  maker.Depend(gap, call, EdgeKind::kProgram);
  maker.Depend(next, gap, EdgeKind::kProgram);
  maker.Depend(a, call, EdgeKind::kLaunch);
  maker.Depend(b, next, EdgeKind::kLaunch);
  maker.Depend(b, a, EdgeKind::kStream);
  const TimedExecution execution = std::move(maker).Make();
  EXPECT_THAT(Path(execution),
              ElementsAre("launch a cpu_bound 10", "a gpu_kernel_launch_overhead 10",
                          "a gpu_compute_bound 180", "b gpu_kernel_kernel_overhead 5",
                          "b gpu_compute_bound 95"));
  const absl::StatusOr<JobGraph> job = BuildExecutionJob(execution, {});
  ASSERT_THAT(job, IsOk());
  const PathGraph& graph = job->ranks[0].graph;
  ASSERT_EQ(graph.lanes.size(), 2);
  EXPECT_EQ(graph.lanes[0].process, "rank 0");
  EXPECT_EQ(graph.lanes[0].thread, "thread 3");
  EXPECT_EQ(graph.lanes[1].thread, "stream 7");
  EXPECT_EQ(graph.base_ns, 100);
}

// The device was idle when the next call came: the time since its work ended is the host's.
TEST(ExecutionJobTest, ACallBeginsAfterWhatItsThreadWaitedForInGaps) {
  ExecutionMaker maker;
  const NodeIndex call = maker.Add("launch a", kThread, 0, 10, BoundBy::kCpu);
  const NodeIndex a = maker.Add("a", kStream, 10, 300);
  // Two gaps in a row; the first of them waited.
  const NodeIndex first = maker.Add("host_gap", kThread, 300, 320, BoundBy::kHostGap);
  const NodeIndex second = maker.Add("host_gap", kThread, 320, 350, BoundBy::kHostGap);
  const NodeIndex next = maker.Add("launch b", kThread, 350, 360, BoundBy::kCpu);
  const NodeIndex b = maker.Add("b", kStream, 360, 400);
  maker.Depend(a, call, EdgeKind::kLaunch);
  maker.Depend(first, a, EdgeKind::kSync);
  maker.Depend(second, first, EdgeKind::kProgram);
  maker.Depend(next, second, EdgeKind::kProgram);
  maker.Depend(b, next, EdgeKind::kLaunch);
  EXPECT_THAT(Path(std::move(maker).Make()),
              ElementsAre("launch a cpu_bound 10", "a gpu_compute_bound 290", "- host_gap 50",
                          "launch b cpu_bound 10", "b gpu_compute_bound 40"));
}

// A launch outside of any operator belongs to the gap around it.
TEST(ExecutionJobTest, AGapThatLaunchesIsAnEvent) {
  ExecutionMaker maker;
  const NodeIndex gap = maker.Add("host_gap", kThread, 0, 50, BoundBy::kHostGap);
  const NodeIndex a = maker.Add("a", kStream, 60, 100);
  maker.Depend(a, gap, EdgeKind::kLaunch);
  EXPECT_THAT(Path(std::move(maker).Make()),
              ElementsAre("host_gap host_gap 50", "a gpu_kernel_launch_overhead 10",
                          "a gpu_compute_bound 40"));
}

// All within one moment, as replays of nodes without durations have it.
TEST(ExecutionJobTest, WaitsWithinOneMomentMakeNoCircle) {
  ExecutionMaker maker;
  const NodeIndex start = maker.Add("start", kThread, 0, 10, BoundBy::kCpu);
  const NodeIndex z = maker.Add("z", kThread, 20, 20, BoundBy::kCpu);
  const NodeIndex k = maker.Add("k", kStream, 20, 20);
  const NodeIndex l = maker.Add("l", kThread, 20, 30, BoundBy::kCpu);
  maker.Depend(z, start, EdgeKind::kProgram);
  maker.Depend(k, z, EdgeKind::kLaunch);
  maker.Depend(l, k, EdgeKind::kSync);
  EXPECT_THAT(Path(std::move(maker).Make()),
              ElementsAre("start cpu_bound 10", "- host_gap 10", "l cpu_bound 10"));
}

TEST(ExecutionJobTest, WorkThatBeganBeforeItsCauseEndedWasBegunFromWithin) {
  ExecutionMaker maker;
  const NodeIndex a = maker.Add("a", kStream, 0, 100);
  const NodeIndex b = maker.Add("b", kOtherStream, 70, 200);
  maker.Depend(b, a, EdgeKind::kData);
  EXPECT_THAT(Path(std::move(maker).Make()),
              ElementsAre("a gpu_compute_bound 70", "b gpu_compute_bound 130"));
}

TEST(ExecutionJobTest, WithoutALaunchTheTimeBetweenIsTheHosts) {
  ExecutionMaker maker;
  maker.Add("a", kStream, 0, 100);
  maker.Add("b", kOtherStream, 10, 130);
  const NodeIndex c = maker.Add("c", kStream, 150, 200);
  maker.Depend(c, 0, EdgeKind::kStream);
  TimedExecution execution = std::move(maker).Make();
  execution.hosts_are_hidden = true;
  // The last that ended is b, though no edge says so; b itself began while a ran.
  EXPECT_THAT(Path(execution), ElementsAre("- host_gap 10", "b gpu_compute_bound 120",
                                           "- host_gap 20", "c gpu_compute_bound 50"));
  execution.hosts_are_hidden = false;
  EXPECT_THAT(Path(execution),
              ElementsAre("a gpu_compute_bound 100", "c gpu_kernel_kernel_overhead 50",
                          "c gpu_compute_bound 50"));
}

TEST(ExecutionJobTest, ASendAndItsReceiveAreOneKernel) {
  ExecutionMaker maker;
  std::vector<NodeIndex> sends, receives;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Resource stream = {rank, ResourceKind::kStream, 7};
    const int64_t start_ns = rank == 0 ? 0 : 60;
    sends.push_back(maker.Add("permute", stream, start_ns, 100 + rank, BoundBy::kGpuCommunication));
    receives.push_back(
        maker.Add("permute", stream, start_ns, 100 + rank, BoundBy::kGpuCommunication));
    maker.timed(receives.back()).same_kernel_as = sends.back();
  }
  const NodeIndex after = maker.Add("after", kStream, 100, 150);
  maker.Depend(after, sends[0], EdgeKind::kStream);
  maker.Depend(after, receives[0], EdgeKind::kStream);
  TimedExecution execution = std::move(maker).Make();
  execution.meetings.push_back({"permute", 4, {sends[1], receives[0]}, {receives[0]}});
  execution.meetings.push_back({"permute", 4, {sends[0], receives[1]}, {receives[1]}});
  EXPECT_THAT(Path(execution), ElementsAre("- host_gap 60", "permute gpu_communication_bound 40",
                                           "after gpu_compute_bound 50"));
}

TEST(ExecutionJobTest, WhatRunsInTheWindowCountsAsFarAsItDoes) {
  ExecutionMaker maker;
  maker.Add("before", kStream, 0, 100);
  const NodeIndex cut = maker.Add("cut", kStream, 100, 200);
  maker.Depend(cut, 0, EdgeKind::kStream);
  const NodeIndex in = maker.Add("in", kStream, 210, 220);
  maker.Depend(in, cut, EdgeKind::kStream);
  const NodeIndex behind = maker.Add("behind", kStream, 230, 300);
  maker.Depend(behind, in, EdgeKind::kStream);
  const NodeIndex left_out = maker.Add("left out", kOtherStream, 150, 160);
  maker.timed(left_out).is_chosen = false;
  EXPECT_THAT(Path(std::move(maker).Make(), {{0, {150, 225}}}),
              ElementsAre("cut gpu_compute_bound 50", "in gpu_kernel_kernel_overhead 10",
                          "in gpu_compute_bound 10", "- host_gap 5"));
}

TEST(ExecutionJobTest, AnEmptyWindowIsRefused) {
  ExecutionMaker maker;
  maker.Add("a", kStream, 0, 100);
  const TimedExecution execution = std::move(maker).Make();
  EXPECT_THAT(BuildExecutionJob(execution, {{0, {200, 300}}}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(BuildExecutionJob(execution, {{0, {60, 40}}}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(BuildExecutionJob({}, {}).status(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ExecutionJobTest, TimesThatNobodyCanCountAreRefused) {
  ExecutionMaker maker;
  maker.Add("a", kStream, std::numeric_limits<int64_t>::min() + 1, 0);
  maker.Add("b", kStream, 0, std::numeric_limits<int64_t>::max());
  EXPECT_THAT(BuildExecutionJob(std::move(maker).Make(), {}).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(BoundByOfTest, GapsComeBeforeWhereTheyAre) {
  EXPECT_EQ(BoundByOf(kHostGapOpKind, false, false), BoundBy::kHostGap);
  EXPECT_EQ(BoundByOf(kHostGapOpKind, true, true), BoundBy::kHostGap);
}

TEST(BoundByOfTest, TheHostIsTheCpu) {
  EXPECT_EQ(BoundByOf("", true, false), BoundBy::kCpu);
  EXPECT_EQ(BoundByOf("", true, true), BoundBy::kCpu);
}

TEST(BoundByOfTest, CollectivesWithoutACounterpartCommunicate) {
  EXPECT_EQ(BoundByOf("", false, true), BoundBy::kGpuCommunication);
  EXPECT_EQ(BoundByOf(kUnmatchedOpKind, false, false), BoundBy::kGpuCommunication);
  EXPECT_EQ(BoundByOf(kLocalOpKind, false, false), BoundBy::kGpuCommunication);
}

TEST(BoundByOfTest, AllElseOnDevicesComputes) {
  EXPECT_EQ(BoundByOf("", false, false), BoundBy::kGpuCompute);
  EXPECT_EQ(BoundByOf(kMemcpyOpKind, false, false), BoundBy::kGpuCompute);
}

}  // namespace
}  // namespace meridian
