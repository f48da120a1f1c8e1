#include "astra_bridge/prediction/workload_edges.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "astra_bridge/prediction/testing/workload_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<EdgeTimes> Schedule(const ExecutionGraph& graph, std::vector<int64_t> edge_ns,
                                   ReplayResources resources = ReplayResources::kPerResource) {
  const CommunicationMatch match(graph);
  const absl::StatusOr<WorkloadEdges> edges = FindWorkloadEdges(graph, match);
  if (!edges.ok()) return edges.status();
  return ReplayEdges(graph, match, *edges, edge_ns, resources);
}

TEST(EdgeTimesTest, AnEdgeBeginsWithItsLastMember) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  const NodeIndex slow = builder.Compute({0, 0}, 100);
  const NodeIndex fast = builder.Compute({1, 0}, 30);
  const std::vector<NodeIndex> reduce = builder.CollectiveOnAll({0, 1}, 1, world, 8, {slow, fast});
  builder.Compute({1, 0, {reduce[1]}}, 7);
  ASSERT_OK_AND_ASSIGN(const EdgeTimes times, Schedule(std::move(builder).Build(), {40}));
  EXPECT_THAT(times.starts_ns, ElementsAre(100));
  EXPECT_THAT(times.lasts_ns, ElementsAre(40));
  EXPECT_EQ(times.replay.makespan_ns, 147);
}

TEST(EdgeTimesTest, AMessageBeginsWhenItsReceiverIsThere) {
  WorkloadBuilder builder;
  builder.Send({0, 1}, 1, 8, 0);
  const NodeIndex busy = builder.Compute({1, 0}, 100);
  builder.Receive({1, 1, {busy}}, 0, 8, 0);
  ASSERT_OK_AND_ASSIGN(const EdgeTimes times, Schedule(std::move(builder).Build(), {40}));
  EXPECT_THAT(times.starts_ns, ElementsAre(100));
  EXPECT_THAT(times.lasts_ns, ElementsAre(40));
  EXPECT_EQ(times.replay.makespan_ns, 140);
}

// Two all-reduces that only a stream could order.
ExecutionGraph TwoStreams() {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  const GroupIndex other = builder.Group("1", {0, 1});
  builder.CollectiveOnAll({0, 1}, 1, world, 8);
  builder.CollectiveOnAll({0, 1}, 2, other, 8);
  return std::move(builder).Build();
}

TEST(EdgeTimesTest, StreamsOverlapAndTheSimulatorsRanksDoNot) {
  const ExecutionGraph graph = TwoStreams();
  ASSERT_OK_AND_ASSIGN(const EdgeTimes streams, Schedule(graph, {40, 50}));
  EXPECT_THAT(streams.starts_ns, ElementsAre(0, 0));
  EXPECT_THAT(streams.lasts_ns, ElementsAre(40, 50));
  ASSERT_OK_AND_ASSIGN(const EdgeTimes simulator,
                       Schedule(graph, {40, 50}, ReplayResources::kSimulator));
  EXPECT_THAT(simulator.starts_ns, ElementsAre(0, 40));
  EXPECT_THAT(simulator.lasts_ns, ElementsAre(40, 50));
}

TEST(EdgeTimesTest, WhatIsNotPricedLastsAsLongAsInTheTrace) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  const std::vector<NodeIndex> first =
      builder.CollectiveOnAll({0, 1}, 1, world, 8, {}, ChakraProtoMsg::BARRIER);
  builder.CollectiveOnAll({0, 1}, 1, world, 8, first);
  ExecutionGraph graph = std::move(builder).Build();
  graph.set_duration_ns(first[0], 20);
  graph.set_duration_ns(first[1], 25);
  ASSERT_OK_AND_ASSIGN(const EdgeTimes times, Schedule(graph, {40}));
  EXPECT_THAT(times.starts_ns, ElementsAre(25));
  EXPECT_THAT(times.lasts_ns, ElementsAre(40));
}

TEST(EdgeTimesTest, NamesTheNodesOfADeadlock) {
  WorkloadBuilder builder;
  const GroupIndex world = builder.Group("", {0, 1});
  const GroupIndex other = builder.Group("1", {0, 1});
  // One stream a rank, and each rank begins with another collective.
  builder.Collective({0, 1}, world, 8);
  builder.Collective({0, 1}, other, 8);
  builder.Collective({1, 1}, other, 8);
  builder.Collective({1, 1}, world, 8);
  EXPECT_THAT(Schedule(std::move(builder).Build(), {40, 50}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("deadlock"), HasSubstr("rank 0 node 0"),
                             HasSubstr("rank 1 node 0"), HasSubstr("in one order"))));
}

TEST(EdgeTimesTest, NamesACycleOfDependencies) {
  WorkloadBuilder builder;
  builder.Compute({0, 0, {1}}, 5);
  builder.Compute({0, 0, {0}}, 5);
  builder.CollectiveOnAll({0, 1}, 1, builder.Group("", {0, 1}), 8);
  EXPECT_THAT(Schedule(std::move(builder).Build(), {40}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("form a cycle: rank 0 node 0 (n) waits for rank 0 node 1"),
                             HasSubstr("chakra_inspect --check"), Not(HasSubstr("in one order")))));
}

}  // namespace
}  // namespace meridian
