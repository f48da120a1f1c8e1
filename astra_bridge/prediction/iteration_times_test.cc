#include "astra_bridge/prediction/iteration_prediction.h"

#include <cmath>

#include "astra_bridge/engine/simulated_times.pb.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

constexpr int64_t kStartNs = 1'000'000;

// Two ranks: both compute 1000 ns, rank 1 twice, then reduce, which was measured to take 3000 ns
// from rank 1's start on.
ExecutionGraph Graph(bool has_times) {
  ExecutionGraphBuilder builder;
  const GroupIndex world = builder.AddGroup({"", {0, 1}});
  for (int64_t rank = 0; rank < 2; ++rank) {
    const int64_t ready_ns = kStartNs + 1000 * (rank + 1);
    ExecutionNode node;
    node.id = 1;
    node.name = "multiply";
    node.resource = builder.AddResource({rank, ResourceKind::kStream, 1});
    node.start_ns = has_times ? kStartNs : kNoTimeNs;
    node.duration_ns = ready_ns - kStartNs;
    const NodeIndex computed = builder.AddNode(node);
    node.id = 2;
    node.name = "reduce";
    node.type = ChakraProtoMsg::COMM_COLL_NODE;
    node.resource = builder.AddResource({rank, ResourceKind::kStream, 2});
    node.start_ns = has_times ? ready_ns : kNoTimeNs;
    node.duration_ns = 3000;
    node.communication.emplace();
    node.communication->bytes = 64;
    node.communication->group = world;
    const NodeIndex reduced = builder.AddNode(node);
    builder.AddDependency(reduced, computed, EdgeKind::kData);
  }
  return std::move(builder).Build();
}

SimulatedTimes Times(const ExecutionGraph& graph, double log_factor) {
  const CommunicationMatch match(graph);
  IterationPrediction prediction;
  absl::StatusOr<WorkloadEdges> edges = FindWorkloadEdges(graph, match);
  EXPECT_OK(edges.status());
  prediction.edges = *std::move(edges);
  prediction.seconds = {5e-6};
  absl::StatusOr<EdgeTimes> replayed =
      ReplayEdges(graph, match, prediction.edges, {5000}, ReplayResources::kPerResource);
  EXPECT_OK(replayed.status());
  prediction.times = *std::move(replayed);
  std::function<double(const CommEdge&)> off;
  if (log_factor > 0) off = [=](const CommEdge&) { return log_factor; };
  absl::StatusOr<SimulatedTimes> times =
      TimeIteration(prediction, graph, match, ReplayResources::kPerResource, off);
  EXPECT_OK(times.status());
  return times.ok() ? *std::move(times) : SimulatedTimes();
}

TEST(IterationTimesTest, MeasuredBesideSimulated) {
  const SimulatedTimes times = Times(Graph(/*has_times=*/true), std::log(2.0));
  // 2000 ns of rank 1, then 5000.
  EXPECT_EQ(times.simulated().makespan_ns(), 7000);
  EXPECT_EQ(times.simulated().computing_ns(), 1500);
  // Rank 0 waits for 1000 ns.
  EXPECT_EQ(times.simulated().exposed_communication_ns(), 5500);
  EXPECT_EQ(times.measured_ns(), 5000);
  EXPECT_EQ(times.low_ns(), 4500);
  EXPECT_EQ(times.high_ns(), 12000);
}

TEST(IterationTimesTest, WhatIsNotKnownIsAbsent) {
  const SimulatedTimes times = Times(Graph(/*has_times=*/false), 0);
  EXPECT_EQ(times.simulated().makespan_ns(), 7000);
  EXPECT_FALSE(times.has_measured_ns());
  EXPECT_FALSE(times.has_low_ns());
}

}  // namespace
}  // namespace meridian
