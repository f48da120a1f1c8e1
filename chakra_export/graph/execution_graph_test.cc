#include "chakra_export/graph/execution_graph.h"

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "chakra_export/graph/testing/random_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr EdgeKinds kData = EdgeKind::kData;
constexpr EdgeKinds kStream = EdgeKind::kStream;

// Nodes 10, 11, 12, ... on one stream of rank 2.
ExecutionGraphBuilder ThreeNodes() {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.resource = builder.AddResource({2, ResourceKind::kStream, 7});
  for (uint64_t id = 10; id < 13; ++id) {
    node.id = id;
    node.name = id == 10 ? "first" : "other";
    node.duration_ns = static_cast<int64_t>(id) * 100;
    builder.AddNode(node);
  }
  return builder;
}

TEST(ExecutionGraphTest, NamesKindsOfCommunication) {
  ExecutionGraphBuilder builder;
  ExecutionNode node;
  node.resource = builder.AddResource({0, ResourceKind::kCommunication, 0});
  node.communication = Communication();
  node.communication->type = ChakraProtoMsg::REDUCE_SCATTER;
  node.communication->group = builder.AddGroup({"", {0, 1}});
  for (const auto type : {ChakraProtoMsg::COMM_COLL_NODE, ChakraProtoMsg::COMM_SEND_NODE,
                          ChakraProtoMsg::COMM_RECV_NODE}) {
    node.type = type;
    ++node.id;
    builder.AddNode(node);
  }
  const ExecutionGraph graph = std::move(builder).Build();
  EXPECT_EQ(graph.CommunicationKind(0), "REDUCE_SCATTER");
  EXPECT_EQ(graph.CommunicationKind(1), "SEND");
  EXPECT_EQ(graph.CommunicationKind(2), "RECV");
}

TEST(ExecutionGraphTest, KeepsWhatIsPutIn) {
  ExecutionGraphBuilder builder = ThreeNodes();
  ExecutionNode node;
  node.id = 5;
  node.name = "all-reduce.1";
  node.type = ChakraProtoMsg::COMM_COLL_NODE;
  node.resource = builder.AddResource({0, ResourceKind::kCommunication, 0});
  node.start_ns = 123;
  node.communication = Communication();
  node.communication->bytes = 4096;
  node.communication->group = builder.AddGroup({"1", {2, 0}});
  EXPECT_EQ(builder.AddNode(node), 3);
  const ExecutionGraph graph = std::move(builder).Build();

  EXPECT_EQ(graph.node_count(), 4);
  EXPECT_THAT(graph.Ranks(), ElementsAre(0, 2));
  EXPECT_EQ(graph.id(1), 11);
  EXPECT_EQ(graph.name(2), "other");
  EXPECT_EQ(graph.type(0), ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(graph.start_ns(0), kNoTimeNs);
  EXPECT_EQ(graph.duration_ns(2), 1200);
  EXPECT_EQ(graph.rank(0), 2);
  EXPECT_EQ(graph.resource(0).number, 7);
  EXPECT_EQ(graph.communication(0), nullptr);
  EXPECT_EQ(graph.start_ns(3), 123);
  EXPECT_EQ(graph.communication(3)->bytes, 4096);
  EXPECT_THAT(graph.groups()[graph.communication(3)->group].ranks, ElementsAre(2, 0));
  EXPECT_EQ(graph.Describe(3), "rank 0 node 5 (all-reduce.1)");
}

TEST(ExecutionGraphTest, EdgesAreSortedAndMergedWithTheirKinds) {
  ExecutionGraphBuilder builder = ThreeNodes();
  builder.AddDependency(2, 1, kStream);
  builder.AddDependency(2, 0, kData);
  builder.AddDependency(2, 1, kData);
  builder.AddDependency(1, 0, kData);
  builder.AddDependency(2, 1, kData);
  const ExecutionGraph graph = std::move(builder).Build();
  EXPECT_EQ(graph.dependency_count(), 3);
  EXPECT_THAT(graph.dependencies(0), IsEmpty());
  EXPECT_THAT(graph.dependencies(1), ElementsAre(0));
  EXPECT_THAT(graph.dependencies(2), ElementsAre(0, 1));
  EXPECT_THAT(graph.dependency_kinds(2), ElementsAre(kData, kData | kStream));
  const SuccessorIndex successors(graph);
  EXPECT_THAT(successors.Of(0), ElementsAre(1, 2));
  EXPECT_THAT(successors.Of(2), IsEmpty());
}

TEST(ExecutionGraphTest, RetainRemovesEdges) {
  ExecutionGraphBuilder builder = ThreeNodes();
  builder.AddDependency(1, 0, kData);
  builder.AddDependency(2, 0, kStream);
  builder.AddDependency(2, 1, kData);
  ExecutionGraph graph = std::move(builder).Build();
  const size_t removed = graph.RetainDependencies([&](NodeIndex node, size_t position) {
    return graph.dependency_kinds(node)[position] == kData && graph.dependencies(node)[0] == 0;
  });
  EXPECT_EQ(removed, 1);
  EXPECT_THAT(graph.dependencies(1), ElementsAre(0));
  EXPECT_THAT(graph.dependencies(2), ElementsAre(1));
  EXPECT_THAT(graph.dependency_kinds(2), ElementsAre(kData));
}

TEST(ExecutionGraphTest, GraphsOfRanksMakeOne) {
  const auto rank_graph = [](int64_t rank) {
    ExecutionGraphBuilder builder;
    builder.AddGroup({"", {0, 1}});
    ExecutionNode node;
    node.resource = builder.AddResource({rank, ResourceKind::kStream, 7});
    node.name = rank == 0 ? "a" : "b";
    node.id = 1;
    builder.AddNode(node);
    node.id = 2;
    node.name = "all-reduce";
    node.type = ChakraProtoMsg::COMM_COLL_NODE;
    node.duration_ns = 10 + rank;
    node.communication = Communication{100 + rank};
    builder.AddNode(node);
    builder.AddDependency(1, 0, rank == 0 ? kData : kStream);
    return std::move(builder).Build();
  };
  ExecutionGraph graph;
  // In whichever order.
  ASSERT_OK(graph.Append(rank_graph(1)));
  ASSERT_OK(graph.Append(rank_graph(0)));
  ASSERT_EQ(graph.node_count(), 4);
  EXPECT_THAT(graph.Ranks(), ElementsAre(0, 1));
  EXPECT_EQ(graph.groups().size(), 1);
  for (const int64_t rank : {0, 1}) {
    const NodeIndex first = rank == 1 ? 0 : 2;
    EXPECT_EQ(graph.name(first), rank == 0 ? "a" : "b");
    EXPECT_EQ(graph.rank(first), rank);
    EXPECT_THAT(graph.dependencies(first), IsEmpty());
    EXPECT_EQ(graph.communication(first), nullptr);
    EXPECT_EQ(graph.name(first + 1), "all-reduce");
    EXPECT_EQ(graph.id(first + 1), 2);
    EXPECT_EQ(graph.duration_ns(first + 1), 10 + rank);
    EXPECT_EQ(graph.communication(first + 1)->bytes, 100 + rank);
    EXPECT_THAT(graph.dependencies(first + 1), ElementsAre(first));
    EXPECT_THAT(graph.dependency_kinds(first + 1), ElementsAre(rank == 0 ? kData : kStream));
  }
}

TEST(ExecutionGraphTest, AnEmptyGraphIsAGraph) {
  ExecutionGraph graph = ExecutionGraphBuilder().Build();
  EXPECT_EQ(graph.node_count(), 0);
  EXPECT_EQ(graph.RetainDependencies([](NodeIndex, size_t) { return true; }), 0);
  EXPECT_THAT(ExecutionGraph().Ranks(), IsEmpty());
}

TEST(ExecutionGraphTest, SuccessorsAreTheEdgesTheOtherWayRound) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    const ExecutionGraph graph = RandomExecutionGraph({}, random);
    const SuccessorIndex successors(graph);
    std::set<std::pair<NodeIndex, NodeIndex>> forth;
    std::set<std::pair<NodeIndex, NodeIndex>> back;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      for (const NodeIndex source : graph.dependencies(node)) forth.insert({source, node});
      for (const NodeIndex target : successors.Of(node)) back.insert({node, target});
    }
    EXPECT_EQ(forth, back);
  }
}

TEST(EdgeKindsTest, EveryKindHasItsOwnLetter) {
  EdgeKinds all;
  for (const EdgeKind kind : kEdgeKinds) {
    EXPECT_EQ(EdgeKinds::FromLetters(EdgeKinds(kind).Letters()), kind);
    EXPECT_FALSE(all.Contains(kind));
    all |= kind;
  }
  EXPECT_EQ(all.Letters(), "dcslpwi");
  EXPECT_EQ(EdgeKinds::FromLetters("iwplscd"), all);
}

TEST(EdgeKindsTest, OtherTextsAreRefused) {
  EXPECT_EQ(EdgeKinds::FromLetters(""), std::nullopt);
  EXPECT_EQ(EdgeKinds::FromLetters("dx"), std::nullopt);
  EXPECT_EQ(ParseEdgeKinds(""), std::nullopt);
  EXPECT_EQ(ParseEdgeKinds("d,"), std::nullopt);
}

TEST(EdgeKindsTest, ListsOfSetsRoundTrip) {
  const std::vector<EdgeKinds> sets = {EdgeKind::kLaunch,
                                       EdgeKinds(EdgeKind::kStream) | EdgeKind::kData};
  EXPECT_EQ(EdgeKindsText(sets), "l,ds");
  EXPECT_EQ(ParseEdgeKinds("l,ds"), sets);
}

}  // namespace
}  // namespace meridian
