#include "chakra_export/graph/graph_replay.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ChakraProtoMsg::NodeType kComp = ChakraProtoMsg::COMP_NODE;
constexpr ChakraProtoMsg::NodeType kSend = ChakraProtoMsg::COMM_SEND_NODE;
constexpr ChakraProtoMsg::NodeType kReceive = ChakraProtoMsg::COMM_RECV_NODE;
constexpr ChakraProtoMsg::NodeType kCollective = ChakraProtoMsg::COMM_COLL_NODE;

// Builds graphs of two ranks. Ids count up, per graph.
class Builder {
 public:
  NodeIndex Comp(int64_t rank, int64_t duration_ns, const std::vector<NodeIndex>& deps = {},
                 int64_t stream = 0) {
    return Add({rank, ResourceKind::kStream, stream}, kComp, duration_ns, deps, std::nullopt);
  }
  NodeIndex Collective(int64_t rank, int64_t duration_ns, const std::vector<NodeIndex>& deps = {}) {
    Communication communication;
    communication.group = builder_.AddGroup({"", {0, 1}});
    return Add({rank, ResourceKind::kCommunication, 0}, kCollective, duration_ns, deps,
               communication);
  }
  NodeIndex Message(ChakraProtoMsg::NodeType type, int64_t rank, int64_t duration_ns,
                    const std::vector<NodeIndex>& deps = {}) {
    Communication communication;
    communication.source = type == kSend ? rank : 1 - rank;
    communication.target = type == kSend ? 1 - rank : rank;
    return Add({rank, ResourceKind::kCommunication, 0}, type, duration_ns, deps, communication);
  }

  ExecutionGraph Build() { return std::move(builder_).Build(); }

 private:
  NodeIndex Add(const Resource& resource, ChakraProtoMsg::NodeType type, int64_t duration_ns,
                const std::vector<NodeIndex>& deps, std::optional<Communication> communication) {
    ExecutionNode node;
    node.id = builder_.node_count();
    node.name = "n";
    node.type = type;
    node.resource = builder_.AddResource(resource);
    node.duration_ns = duration_ns;
    node.communication = communication;
    const NodeIndex index = builder_.AddNode(node);
    for (const NodeIndex dep : deps) {
      builder_.AddDependency(index, dep, EdgeKind::kData);
    }
    return index;
  }

  ExecutionGraphBuilder builder_;
};

absl::StatusOr<GraphReplay> Replay(const ExecutionGraph& graph, const ReplayOptions& options = {}) {
  return ReplayGraph(graph, CommunicationMatch(graph), options);
}

ReplayOptions With(ReplayResources resources, SendMode send_mode = SendMode::kRendezvous) {
  ReplayOptions options;
  options.resources = resources;
  options.send_mode = send_mode;
  return options;
}

TEST(GraphReplayTest, NodesOfAResourceRunOneAfterTheOtherByTheirIds) {
  Builder builder;
  builder.Comp(0, 10);        // 0: 0..10
  builder.Comp(0, 5);         // 1: ready at 0, waits for the stream: 10..15
  builder.Comp(0, 7, {}, 1);  // 2: another stream: 0..7
  builder.Comp(0, 1, {2});    // 3: ready at 7: 15..16
  const ExecutionGraph graph = builder.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph));
  EXPECT_THAT(replay.starts_ns, ElementsAre(0, 10, 0, 15));
  EXPECT_THAT(replay.ends_ns, ElementsAre(10, 15, 7, 16));
  EXPECT_THAT(replay.causes, ElementsAre(kNoNodeIndex, 0, kNoNodeIndex, 1));
  EXPECT_EQ(replay.makespan_ns, 16);
  ASSERT_OK_AND_ASSIGN(const GraphReplay free, Replay(graph, With(ReplayResources::kUnlimited)));
  EXPECT_THAT(free.ends_ns, ElementsAre(10, 5, 7, 8));
}

TEST(GraphReplayTest, ACollectiveWaitsForItsLastMember) {
  Builder builder;
  const NodeIndex early = builder.Comp(0, 3);
  const NodeIndex late = builder.Comp(1, 10);
  builder.Collective(0, 4, {early});  // issued at 3, all there at 10, takes 4
  builder.Collective(1, 6, {late});
  const ExecutionGraph graph = builder.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph));
  EXPECT_THAT(replay.starts_ns, ElementsAre(0, 0, 3, 10));
  EXPECT_THAT(replay.ends_ns, ElementsAre(3, 10, 14, 16));
}

TEST(GraphReplayTest, ThePricerDecidesWhatCommunicationTakes) {
  Builder builder;
  const NodeIndex late = builder.Comp(1, 10);
  const NodeIndex a = builder.Collective(0, 1);
  const NodeIndex b = builder.Collective(1, 1, {late});
  const ExecutionGraph graph = builder.Build();
  ReplayOptions options;
  options.pricer = [&](absl::Span<const NodeIndex> members, int64_t start_ns,
                       absl::Span<int64_t> durations_ns) {
    EXPECT_THAT(members, ElementsAre(a, b));
    EXPECT_EQ(start_ns, 10);
    EXPECT_THAT(durations_ns, ElementsAre(1, 1));  // their own
    durations_ns[0] = 100;
    durations_ns[1] = 200;
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph, options));
  EXPECT_EQ(replay.ends_ns[a], 110);
  EXPECT_EQ(replay.ends_ns[b], 210);

  options.pricer = [](absl::Span<const NodeIndex>, int64_t, absl::Span<int64_t>) {
    return absl::UnavailableError("no engine");
  };
  EXPECT_THAT(Replay(graph, options), StatusIs(absl::StatusCode::kUnavailable, "no engine"));
  options.pricer = [](absl::Span<const NodeIndex>, int64_t, absl::Span<int64_t> durations_ns) {
    durations_ns[0] = -1;
    return absl::OkStatus();
  };
  EXPECT_THAT(Replay(graph, options), StatusIs(absl::StatusCode::kInternal));
}

TEST(GraphReplayTest, MessagesMeetOrArrive) {
  Builder builder;
  const NodeIndex late = builder.Comp(1, 10);
  builder.Message(kSend, 0, 4);
  builder.Message(kReceive, 1, 3, {late});
  const ExecutionGraph graph = builder.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay meeting, Replay(graph));
  EXPECT_THAT(meeting.ends_ns, ElementsAre(10, 14, 13));
  // The message had arrived at 4.
  ASSERT_OK_AND_ASSIGN(const GraphReplay eager,
                       Replay(graph, With(ReplayResources::kPerResource, SendMode::kEager)));
  EXPECT_THAT(eager.ends_ns, ElementsAre(10, 4, 10));
}

TEST(GraphReplayTest, AnEagerReceiveWaitsForTheArrival) {
  Builder builder;
  const NodeIndex late = builder.Comp(0, 10);
  builder.Message(kSend, 0, 4, {late});
  builder.Message(kReceive, 1, 3);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay,
                       Replay(graph, With(ReplayResources::kPerResource, SendMode::kEager)));
  EXPECT_THAT(replay.starts_ns, ElementsAre(0, 10, 0));
  EXPECT_THAT(replay.ends_ns, ElementsAre(10, 14, 14));
}

TEST(GraphReplayTest, BothWaysAtOnceIsNoDeadlockThoughSendsShareAResource) {
  Builder builder;
  for (const int64_t rank : {0, 1}) {
    builder.Message(kSend, rank, 5);
    builder.Message(kReceive, rank, 5);
  }
  const ExecutionGraph graph = builder.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph));
  EXPECT_THAT(replay.ends_ns, ElementsAre(5, 5, 5, 5));
}

TEST(GraphReplayTest, ExplainsADeadlock) {
  // Each rank sends first and receives after that: fine for eager sends only.
  Builder builder;
  const NodeIndex send0 = builder.Message(kSend, 0, 5);
  builder.Message(kReceive, 0, 5, {send0});
  const NodeIndex send1 = builder.Message(kSend, 1, 5);
  builder.Message(kReceive, 1, 5, {send1});
  const ExecutionGraph graph = builder.Build();
  EXPECT_THAT(Replay(graph),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "deadlock at 0 ns: rank 0 node 0 (n) waits for rank 1 node 3 (n) waits for "
                       "rank 1 node 2 (n) waits for rank 0 node 1 (n) waits for rank 0 node 0 "
                       "(n)"));
  EXPECT_OK(Replay(graph, With(ReplayResources::kUnlimited, SendMode::kEager)));
  EXPECT_OK(Replay(graph, With(ReplayResources::kUnlimited, SendMode::kRendezvousIfPossible)));
}

TEST(GraphReplayTest, CrossingCollectivesOnOneResourceAreADeadlock) {
  // Rank 0 would run the world's collective first, rank 1 that of the pair "1".
  ExecutionGraphBuilder builder;
  const GroupIndex groups[] = {builder.AddGroup({"", {0, 1}}), builder.AddGroup({"1", {0, 1}})};
  ExecutionNode node;
  node.name = "c";
  node.type = kCollective;
  for (const int64_t rank : {0, 1}) {
    for (const int k : {0, 1}) {
      node.id = k;
      node.resource = builder.AddResource({rank, ResourceKind::kCommunication, 0});
      node.communication = Communication();
      node.communication->group = groups[rank == 0 ? k : 1 - k];
      builder.AddNode(node);
    }
  }
  const ExecutionGraph graph = std::move(builder).Build();
  EXPECT_THAT(Replay(graph, With(ReplayResources::kSimulator)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("deadlock")));
  EXPECT_OK(Replay(graph, With(ReplayResources::kUnlimited)));
}

TEST(GraphReplayTest, ACycleIsADeadlock) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.name = "a";
  node.resource = builder.AddResource({});
  builder.AddNode(node);
  builder.AddDependency(0, 0, EdgeKind::kData);
  EXPECT_THAT(Replay(std::move(builder).Build()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "deadlock at 0 ns: rank 0 node 0 (a) waits for rank 0 node 0 (a)"));
}

TEST(GraphReplayTest, UnmatchedCommunicationIsRefused) {
  Builder builder;
  builder.Comp(1, 1);
  builder.Collective(0, 1);
  EXPECT_THAT(Replay(builder.Build()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rank 1 has only 0")));
}

TEST(GraphReplayTest, TimesThatDoNotFitAreAnError) {
  Builder builder;
  builder.Comp(0, std::numeric_limits<int64_t>::max());
  builder.Comp(0, 1, {0});
  EXPECT_THAT(Replay(builder.Build()), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(GraphReplayTest, SimulatorSlotsAreHostComputeAndCommunication) {
  Builder builder;
  builder.Comp(0, 5, {}, 1);
  builder.Comp(0, 5, {}, 2);  // another stream, but the same device
  builder.Collective(0, 3);
  builder.Comp(1, 1);
  builder.Collective(1, 3);
  const ExecutionGraph graph = builder.Build();
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph, With(ReplayResources::kSimulator)));
  EXPECT_THAT(replay.ends_ns, ElementsAre(5, 10, 3, 1, 3));
}

// The same rules, nanosecond after nanosecond over all nodes.
class SlowReplay {
 public:
  SlowReplay(const ExecutionGraph& graph, const ReplayOptions& options)
      : graph_(graph),
        match_(graph),
        options_(options),
        starts_ns_(graph.node_count(), -1),
        ends_ns_(graph.node_count(), -1),
        done_(graph.node_count(), false) {}

  std::vector<int64_t> Run() {
    for (int64_t now = 0; now < 10000; ++now) {
      bool changed = true;
      while (changed) changed = Finish(now) | Issue(now);
    }
    return ends_ns_;
  }

 private:
  bool Finish(int64_t now) {
    bool changed = false;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (done_[node] || ends_ns_[node] != now) continue;
      done_[node] = true;
      changed = true;
    }
    return changed;
  }

  bool IsReady(NodeIndex node) const {
    const absl::Span<const NodeIndex> deps = graph_.dependencies(node);
    return starts_ns_[node] < 0 &&
           std::all_of(deps.begin(), deps.end(), [this](NodeIndex dep) { return done_[dep]; });
  }

  bool Exclude(NodeIndex a, NodeIndex b) const {
    if (graph_.type(a) == kReceive || graph_.type(b) == kReceive) return false;
    if (options_.resources == ReplayResources::kUnlimited) return false;
    if (options_.resources == ReplayResources::kPerResource) {
      return graph_.resource(a) == graph_.resource(b);
    }
    const auto slot = [this](NodeIndex node) {
      if (graph_.resource(node).kind == ResourceKind::kHostThread) return 0;
      return graph_.type(node) == kComp ? 1 : 2;
    };
    return graph_.rank(a) == graph_.rank(b) && slot(a) == slot(b);
  }

  // Somebody runs on its resource, or is ready and goes first.
  bool IsBlocked(NodeIndex node) const {
    for (NodeIndex other = 0; other < graph_.node_count(); ++other) {
      if (other == node || !Exclude(node, other)) continue;
      if (starts_ns_[other] >= 0 && !done_[other]) return true;
      if (IsReady(other) && graph_.id(other) < graph_.id(node)) return true;
    }
    return false;
  }

  bool Issue(int64_t now) {
    std::vector<NodeIndex> issued;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (IsReady(node) && !IsBlocked(node)) issued.push_back(node);
    }
    for (const NodeIndex node : issued) starts_ns_[node] = now;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) SetEnd(node, now);
    return !issued.empty();
  }

  void SetEnd(NodeIndex node, int64_t now) {
    if (starts_ns_[node] < 0 || ends_ns_[node] >= 0) return;
    const CommunicationMatch::Instance instance = match_.instance_of(node);
    if (instance == CommunicationMatch::kNoInstance) {
      ends_ns_[node] = now + graph_.duration_ns(node);
      return;
    }
    const absl::Span<const NodeIndex> members = match_.members(instance);
    if (options_.send_mode == SendMode::kEager && graph_.type(node) == kSend) {
      ends_ns_[node] = now + graph_.duration_ns(node);
    } else if (options_.send_mode == SendMode::kEager && graph_.type(node) == kReceive) {
      const NodeIndex send = members[0];
      if (starts_ns_[send] < 0) return;
      ends_ns_[node] = std::max(starts_ns_[send] + graph_.duration_ns(send), starts_ns_[node]);
    } else if (std::all_of(members.begin(), members.end(),
                           [this](NodeIndex member) { return starts_ns_[member] >= 0; })) {
      ends_ns_[node] = now + graph_.duration_ns(node);
    }
  }

  const ExecutionGraph& graph_;
  const CommunicationMatch match_;
  const ReplayOptions& options_;
  std::vector<int64_t> starts_ns_;
  std::vector<int64_t> ends_ns_;
  std::vector<bool> done_;
};

class GraphReplayLawTest : public ::testing::TestWithParam<std::pair<ReplayResources, SendMode>> {};

RandomGraphOptions ThreeRanks(int round) {
  RandomGraphOptions options;
  options.ranks = 2 + round % 2;
  options.nodes = 6;
  options.resources = 1 + round % 3;
  options.collectives = round % 4;
  options.messages = round % 3;
  options.edge_probability = 0.05 * (round % 8);
  return options;
}

TEST_P(GraphReplayLawTest, AgreesWithTheSlowReplay) {
  std::mt19937_64 random(1);
  const ReplayOptions options = With(GetParam().first, GetParam().second);
  for (int round = 0; round < 100; ++round) {
    const ExecutionGraph graph = RandomExecutionGraph(ThreeRanks(round), random);
    ASSERT_OK_AND_ASSIGN(const GraphReplay replay, Replay(graph, options));
    EXPECT_EQ(replay.ends_ns, SlowReplay(graph, options).Run());
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllModes, GraphReplayLawTest,
    ::testing::Values(std::make_pair(ReplayResources::kUnlimited, SendMode::kRendezvous),
                      std::make_pair(ReplayResources::kPerResource, SendMode::kRendezvous),
                      std::make_pair(ReplayResources::kPerResource, SendMode::kEager),
                      std::make_pair(ReplayResources::kSimulator, SendMode::kEager)));

TEST(GraphReplayTest, WithoutCommunicationAndLimitsTheMakespanIsTheLongestPath) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    const ExecutionGraph graph = RandomExecutionGraph({}, random);
    ASSERT_OK_AND_ASSIGN(const GraphReplay replay,
                         Replay(graph, With(ReplayResources::kUnlimited)));
    ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, TopologicalOrder(graph));
    std::vector<int64_t> ends_ns(graph.node_count());
    for (const NodeIndex node : order) {
      for (const NodeIndex source : graph.dependencies(node)) {
        ends_ns[node] = std::max(ends_ns[node], ends_ns[source]);
      }
      ends_ns[node] += graph.duration_ns(node);
    }
    EXPECT_EQ(replay.makespan_ns, *std::max_element(ends_ns.begin(), ends_ns.end()));
  }
}

}  // namespace
}  // namespace meridian
