#include "chakra_export/pytorch/workload_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A rank whose thread is track 0 and whose streams are tracks 1 and 2. Times are microseconds.
class Rank {
 public:
  explicit Rank(int64_t rank) {
    communication_.rank = rank;
    Track thread;
    thread.process = thread.thread = "7";
    table_.AddTrack(thread);
    for (const char* stream : {"7", "16"}) {
      Track track;
      track.kind = TrackKind::kDevice;
      track.process = "0";
      track.thread = stream;
      table_.AddTrack(track);
    }
  }

  // Nodes come in the order of their starts.
  TimelineIndex Add(const std::string& name, TrackId track, int64_t start, int64_t duration) {
    EventRecord event;
    event.track = track;
    event.name = table_.InternName(name);
    event.start_ps = start * kPsPerUs;
    event.duration_ps = duration * kPsPerUs;
    TimelineNode node;
    node.row = table_.Add(event);
    node.track = track;
    node.start_ps = event.start_ps;
    node.duration_ps = event.duration_ps;
    node.on_host = track == 0;
    timeline_.nodes.push_back(node);
    return static_cast<TimelineIndex>(timeline_.nodes.size() - 1);
  }

  void AddEdge(TimelineIndex node, TimelineIndex source, EdgeKind kind) {
    timeline_.AddEdge(node, source, kind);
  }

  void Communicate(TimelineIndex node, uint32_t instance, ChakraProtoMsg::CollectiveCommType type,
                   std::vector<int64_t> ranks) {
    NodeCommunication communication;
    communication.type = ChakraProtoMsg::COMM_COLL_NODE;
    communication.collective = type;
    if (type != ChakraProtoMsg::BARRIER) communication.simulated = type;
    if (type == ChakraProtoMsg::REDUCE) communication.simulated = ChakraProtoMsg::ALL_REDUCE;
    communication.bytes = 1024;
    communication.instance = instance;
    communication.ranks = std::move(ranks);
    communication.transfer_ps = timeline_.nodes[node].duration_ps;
    communication_.nodes[node] = {communication};
  }

  // A kernel that sends to one rank and receives from another at once.
  void Exchange(TimelineIndex node, int64_t target, int64_t source) {
    NodeCommunication send;
    send.type = ChakraProtoMsg::COMM_SEND_NODE;
    send.bytes = 64;
    send.source = communication_.rank;
    send.target = target;
    send.transfer_ps = timeline_.nodes[node].duration_ps;
    NodeCommunication receive = send;
    receive.type = ChakraProtoMsg::COMM_RECV_NODE;
    receive.source = source;
    receive.target = communication_.rank;
    communication_.nodes[node] = {send, receive};
  }

  RankInput input() const { return {&table_, &timeline_, &communication_}; }

 private:
  EventTable table_;
  RankTimeline timeline_;
  RankCommunication communication_;
};

WorkloadGraph Build(const std::vector<RankInput>& inputs, const WorkloadGraphOptions& options) {
  absl::StatusOr<WorkloadGraph> workload = BuildWorkloadGraph(inputs, options);
  EXPECT_OK(workload);
  return *std::move(workload);
}

// "source > node: kinds".
std::vector<std::string> Edges(const ExecutionGraph& graph) {
  std::vector<std::string> texts;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    for (size_t i = 0; i < graph.dependencies(node).size(); ++i) {
      texts.push_back(absl::StrCat(graph.name(graph.dependencies(node)[i]), " > ", graph.name(node),
                                   ": ", graph.dependency_kinds(node)[i].Letters()));
    }
  }
  return texts;
}

// The thread waits for a on stream 7, then launches b on stream 16.
TEST(WorkloadGraphTest, FoldsWhatTheHostWaitedForIntoDeviceEdges) {
  Rank rank(0);
  const TimelineIndex launch = rank.Add("launch a", 0, 0, 5);
  const TimelineIndex a = rank.Add("a", 1, 10, 10);
  const TimelineIndex next = rank.Add("launch b", 0, 20, 5);
  const TimelineIndex b = rank.Add("b", 2, 30, 10);
  rank.AddEdge(a, launch, EdgeKind::kLaunch);
  rank.AddEdge(next, launch, EdgeKind::kProgram);
  rank.AddEdge(next, a, EdgeKind::kSync);
  rank.AddEdge(b, next, EdgeKind::kLaunch);
  const WorkloadGraph simulation = Build({rank.input()}, {});
  EXPECT_THAT(Edges(simulation.graph), ElementsAre("a > host_gap: pw", "host_gap > b: l"));
  EXPECT_EQ(simulation.graph.duration_ns(1), 10000);

  WorkloadGraphOptions full;
  full.flavor = EtFlavor::kFull;
  EXPECT_THAT(Edges(Build({rank.input()}, full).graph),
              ElementsAre("launch a > a: l", "a > launch b: w", "launch b > b: l"));
}

// What was launched before the wait does not come after it, though it ran later.
TEST(WorkloadGraphTest, WorkKnowsOnlyWhatItsLaunchKnew) {
  Rank rank(0);
  const TimelineIndex launch = rank.Add("launch", 0, 0, 5);
  const TimelineIndex a = rank.Add("a", 1, 10, 10);
  const TimelineIndex next = rank.Add("next", 0, 20, 5);
  const TimelineIndex b = rank.Add("b", 2, 20, 30);
  rank.AddEdge(a, launch, EdgeKind::kLaunch);
  rank.AddEdge(next, a, EdgeKind::kSync);
  rank.AddEdge(b, launch, EdgeKind::kLaunch);
  EXPECT_THAT(Edges(Build({rank.input()}, {}).graph), ElementsAre("a > b: p"));
}

// Both ranks overlap two collectives, which began in another order on each.
TEST(WorkloadGraphTest, ChainsCollectivesInOneOrder) {
  Rank first(0), second(1);
  const std::vector<int64_t> world = {0, 1};
  first.Communicate(first.Add("x", 1, 0, 30), 0, ChakraProtoMsg::ALL_REDUCE, world);
  first.Communicate(first.Add("y", 2, 5, 30), 1, ChakraProtoMsg::ALL_REDUCE, world);
  second.Communicate(second.Add("x", 1, 1, 30), 0, ChakraProtoMsg::ALL_REDUCE, world);
  second.Communicate(second.Add("y", 2, 6, 30), 1, ChakraProtoMsg::ALL_REDUCE, world);
  WorkloadGraphOptions options;
  options.world_size = 2;
  options.clocks_agree = false;
  const WorkloadGraph workload = Build({first.input(), second.input()}, options);
  EXPECT_THAT(Edges(workload.graph), ElementsAre("x > y: c", "x > y: c"));
  EXPECT_THAT(workload.communication_nodes, ElementsAre(2, 2));
}

TEST(WorkloadGraphTest, NumbersGroupsAndLowersWhatAstraSimCannotRun) {
  Rank rank(0);
  rank.Communicate(rank.Add("a", 1, 0, 10), 0, ChakraProtoMsg::ALL_REDUCE, {1, 0, 2});
  rank.Communicate(rank.Add("b", 1, 20, 10), 1, ChakraProtoMsg::ALL_GATHER, {0, 2});
  rank.Communicate(rank.Add("c", 1, 40, 10), 2, ChakraProtoMsg::BARRIER, {0, 2});
  WorkloadGraphOptions options;
  options.world_size = 3;
  const WorkloadGraph workload = Build({rank.input()}, options);
  ASSERT_EQ(workload.graph.groups().size(), 2u);
  EXPECT_EQ(workload.graph.groups()[0].name, "");
  EXPECT_THAT(workload.graph.groups()[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(workload.graph.groups()[1].name, "1");
  EXPECT_THAT(workload.graph.groups()[1].ranks, ElementsAre(0, 2));
  EXPECT_THAT(workload.lowered[0],
              ElementsAre(::testing::Pair("ASTRA-sim cannot run its kind", 1)));

  options.flavor = EtFlavor::kFull;
  const WorkloadGraph full = Build({rank.input()}, options);
  EXPECT_THAT(full.lowered[0], IsEmpty());
  EXPECT_EQ(full.graph.type(0), ChakraProtoMsg::METADATA_NODE);
}

TEST(WorkloadGraphTest, WhatAstraSimDoesNotHaveBecomesTheNearest) {
  Rank rank(0);
  rank.Communicate(rank.Add("a", 1, 0, 10), 0, ChakraProtoMsg::REDUCE, {0, 1});
  WorkloadGraphOptions options;
  options.world_size = 2;
  const WorkloadGraph workload = Build({rank.input()}, options);
  EXPECT_EQ(workload.graph.communication(0)->type, ChakraProtoMsg::ALL_REDUCE);
  EXPECT_EQ(workload.approximated, 1);
  options.flavor = EtFlavor::kFull;
  EXPECT_EQ(Build({rank.input()}, options).graph.communication(1)->type, ChakraProtoMsg::REDUCE);
}

// Send and receive of a batch run at once, and what comes next waits for both.
TEST(WorkloadGraphTest, AKernelOfABatchIsANodeForEachOfItsMessages) {
  Rank rank(1);
  const TimelineIndex before = rank.Add("before", 1, 0, 10);
  const TimelineIndex batch = rank.Add("batch", 1, 10, 10);
  const TimelineIndex after = rank.Add("after", 1, 20, 10);
  rank.Exchange(batch, 2, 0);
  rank.AddEdge(batch, before, EdgeKind::kStream);
  rank.AddEdge(after, batch, EdgeKind::kStream);
  WorkloadGraphOptions options;
  options.world_size = 3;
  const WorkloadGraph workload = Build({rank.input()}, options);
  EXPECT_THAT(workload.communication_nodes, ElementsAre(2));
  ASSERT_EQ(workload.graph.node_count(), 4u);
  EXPECT_EQ(workload.graph.type(1), ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_EQ(workload.graph.communication(1)->target, 2);
  EXPECT_EQ(workload.graph.type(2), ChakraProtoMsg::COMM_RECV_NODE);
  EXPECT_EQ(workload.graph.communication(2)->source, 0);
  EXPECT_THAT(workload.graph.dependencies(1), ElementsAre(0));
  EXPECT_THAT(workload.graph.dependencies(2), ElementsAre(0));
  EXPECT_THAT(workload.graph.dependencies(3), ElementsAre(1, 2));
}

}  // namespace
}  // namespace meridian
