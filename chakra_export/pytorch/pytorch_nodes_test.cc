#include "chakra_export/pytorch/pytorch_nodes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
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

PytorchNodes Make(const std::vector<RankInput>& inputs, int64_t world_size,
                  EtFlavor flavor = EtFlavor::kSimulation) {
  MatchedCommunication communication;
  communication.world_size = world_size;
  absl::StatusOr<PytorchNodes> nodes = MakePytorchNodes(inputs, flavor, communication);
  EXPECT_OK(nodes);
  return *std::move(nodes);
}

TEST(PytorchNodesTest, NodesAreThoseOfTheTimelineInTheirPlaces) {
  Rank rank(0);
  const TimelineIndex launch = rank.Add("launch a", 0, 0, 5);
  const TimelineIndex a = rank.Add("a", 1, 10, 10);
  rank.AddEdge(a, launch, EdgeKind::kLaunch);
  rank.Add("b", 2, 10, 10);
  const PytorchNodes made = Make({rank.input()}, 1);
  ASSERT_EQ(made.graph.nodes.size(), 3u);
  EXPECT_TRUE(made.graph.nodes[0].IsOnHost());
  EXPECT_FALSE(made.graph.nodes[0].IsDeviceWork());
  EXPECT_EQ(made.graph.nodes[1].resource.number, 7);
  EXPECT_TRUE(made.graph.nodes[1].is_launched);
  EXPECT_EQ(made.graph.nodes[1].start_ns, 10000);
  EXPECT_EQ(made.graph.nodes[1].end_ns, 20000);
  EXPECT_EQ(made.graph.nodes[2].resource.number, 16);
  EXPECT_FALSE(made.graph.nodes[2].is_launched);
  EXPECT_NE(made.graph.nodes[1].kernel, made.graph.nodes[2].kernel);
  EXPECT_EQ(made.origins[2].node, 2u);
}

// Hosts that are going to be folded away need not be whole.
TEST(PytorchNodesTest, ForSimulationsOnlyCallsThatLaunchOrWaitAreThere) {
  Rank rank(0);
  const TimelineIndex launch = rank.Add("launch a", 0, 0, 5);
  const TimelineIndex a = rank.Add("a", 1, 10, 10);
  const TimelineIndex between = rank.Add("between", 0, 12, 5);
  const TimelineIndex wait = rank.Add("wait", 0, 20, 5);
  rank.AddEdge(a, launch, EdgeKind::kLaunch);
  rank.AddEdge(between, launch, EdgeKind::kProgram);
  rank.AddEdge(wait, between, EdgeKind::kProgram);
  rank.AddEdge(wait, a, EdgeKind::kSync);
  const PytorchNodes made = Make({rank.input()}, 1);
  ASSERT_EQ(made.graph.nodes.size(), 3u);
  EXPECT_EQ(made.graph.nodes[2].name, "wait");
  std::vector<std::string> edges;
  for (const DependencyEdge& edge : made.graph.edges) {
    edges.push_back(absl::StrCat(edge.source, ">", edge.node, ":", edge.kinds.Letters()));
  }
  EXPECT_THAT(edges, ElementsAre("0>2:p", "0>1:l", "1>2:w"));
  EXPECT_EQ(Make({rank.input()}, 1, EtFlavor::kFull).graph.nodes.size(), 4u);
}

TEST(PytorchNodesTest, NumbersGroupsAndLowersWhatAstraSimCannotRun) {
  Rank rank(0);
  rank.Communicate(rank.Add("a", 1, 0, 10), 0, ChakraProtoMsg::ALL_REDUCE, {1, 0, 2});
  rank.Communicate(rank.Add("b", 1, 20, 10), 1, ChakraProtoMsg::ALL_GATHER, {0, 2});
  rank.Communicate(rank.Add("c", 1, 40, 10), 2, ChakraProtoMsg::BARRIER, {0, 2});
  const PytorchNodes made = Make({rank.input()}, 3);
  ASSERT_EQ(made.graph.groups.size(), 2u);
  EXPECT_EQ(made.graph.groups[0].name, "");
  EXPECT_THAT(made.graph.groups[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(made.graph.groups[1].name, "1");
  EXPECT_THAT(made.graph.groups[1].ranks, ElementsAre(0, 2));
  EXPECT_EQ(made.graph.nodes[1].instance, 1u);
  EXPECT_EQ(made.graph.nodes[2].op_kind, kLocalOpKind);
  EXPECT_THAT(made.lowered[0], ElementsAre(::testing::Pair("ASTRA-sim cannot run its kind", 1)));
  EXPECT_THAT(Make({rank.input()}, 3, EtFlavor::kFull).lowered[0], IsEmpty());
}

TEST(PytorchNodesTest, WhatAstraSimDoesNotHaveBecomesTheNearest) {
  Rank rank(0);
  rank.Communicate(rank.Add("a", 1, 0, 10), 0, ChakraProtoMsg::REDUCE, {0, 1});
  const PytorchNodes made = Make({rank.input()}, 2);
  EXPECT_EQ(made.graph.nodes[0].communication->type, ChakraProtoMsg::ALL_REDUCE);
  EXPECT_EQ(made.approximated, 1);
  EXPECT_EQ(Make({rank.input()}, 2, EtFlavor::kFull).graph.nodes[0].communication->type,
            ChakraProtoMsg::REDUCE);
}

// Ranks that never meet have clocks that nobody can compare.
TEST(PytorchNodesTest, WhereNothingIsCommunicatedClocksAreNotCompared) {
  Rank first(0), second(1);
  first.Communicate(first.Add("a", 1, 0, 10), 0, ChakraProtoMsg::ALL_REDUCE, {0, 1});
  const TimelineIndex b = second.Add("b", 1, 0, 10);
  EXPECT_FALSE(Make({first.input(), second.input()}, 2).graph.has_one_clock);
  second.Communicate(b, 0, ChakraProtoMsg::ALL_REDUCE, {0, 1});
  EXPECT_TRUE(Make({first.input(), second.input()}, 2).graph.has_one_clock);
}

// Send and receive of a batch run at once, and what comes next waits for both.
TEST(PytorchNodesTest, AKernelOfABatchIsANodeForEachOfItsMessages) {
  Rank rank(1);
  const TimelineIndex before = rank.Add("before", 1, 0, 10);
  const TimelineIndex batch = rank.Add("batch", 1, 10, 10);
  const TimelineIndex after = rank.Add("after", 1, 20, 10);
  rank.Exchange(batch, 2, 0);
  rank.AddEdge(batch, before, EdgeKind::kStream);
  rank.AddEdge(after, batch, EdgeKind::kStream);
  const PytorchNodes made = Make({rank.input()}, 3);
  const std::vector<RunNode>& nodes = made.graph.nodes;
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[1].type, ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_EQ(nodes[1].communication->target, 2);
  EXPECT_EQ(nodes[2].type, ChakraProtoMsg::COMM_RECV_NODE);
  EXPECT_EQ(nodes[2].communication->source, 0);
  EXPECT_EQ(nodes[1].kernel, nodes[2].kernel);
  std::vector<std::string> edges;
  for (const DependencyEdge& edge : made.graph.edges) {
    edges.push_back(absl::StrCat(edge.source, ">", edge.node));
  }
  EXPECT_THAT(edges, ElementsAre("0>1", "0>2", "1>3", "2>3"));
}

}  // namespace
}  // namespace meridian
