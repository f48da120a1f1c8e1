#include "chakra_export/run/run_graph.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunGraphTest : public ::testing::Test {
 protected:
  RunGraphTest() {
    graph_.groups = {{"", {0, 1}}, {"1", {1, 0}}};
    graph_.rank_count = 2;
  }

  NodeIndex Add(int64_t rank, int64_t stream) {
    RunNode node;
    node.name = "kernel";
    node.resource = {rank, ResourceKind::kStream, stream};
    node.start_ns = static_cast<int64_t>(graph_.nodes.size());
    node.duration_ns = 5;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }

  RunGraph graph_;
};

TEST_F(RunGraphTest, SourcesAreListedByNode) {
  for (int i = 0; i < 4; ++i) Add(0, 7);
  graph_.edges = {{3, 1, EdgeKind::kData}, {1, 0, EdgeKind::kStream}, {3, 0, EdgeKind::kSync}};
  const EdgesByNode sources(graph_.edges, graph_.nodes.size());
  EXPECT_THAT(sources.Of(0), IsEmpty());
  ASSERT_THAT(sources.Of(1), SizeIs(1));
  EXPECT_EQ(sources.Of(1)[0].source, 0u);
  EXPECT_THAT(sources.Of(2), IsEmpty());
  ASSERT_THAT(sources.Of(3), SizeIs(2));
  EXPECT_EQ(sources.Of(3)[0].source, 1u);
  EXPECT_EQ(sources.Of(3)[1].source, 0u);
  EXPECT_TRUE(sources.Of(3)[1].kinds == EdgeKind::kSync);
}

// Ids count up on each rank from 1 in the order that is given, which need not be that of the nodes.
TEST_F(RunGraphTest, TheOrderGivesTheIds) {
  const NodeIndex a = Add(0, 7);
  const NodeIndex b = Add(1, 7);
  const NodeIndex c = Add(0, 8);
  RunNode& reduce = graph_.nodes[c];
  reduce.SetCollective(64, ChakraProtoMsg::ALL_REDUCE, 1);
  graph_.edges = {{a, c, EdgeKind::kData}};
  const ExecutionGraph graph = ToExecutionGraph({c, b, a}, &graph_);
  ASSERT_EQ(graph.node_count(), 3u);
  EXPECT_EQ(graph.id(0), 1u);
  EXPECT_EQ(graph.rank(0), 0);
  EXPECT_EQ(graph.id(1), 1u);
  EXPECT_EQ(graph.rank(1), 1);
  EXPECT_EQ(graph.id(2), 2u);
  EXPECT_EQ(graph.start_ns(2), 0);
  EXPECT_EQ(graph.duration_ns(2), 5);
  EXPECT_THAT(graph.dependencies(2), ElementsAre(0));
  EXPECT_TRUE(graph.dependency_kinds(2)[0] == EdgeKind::kData);
  ASSERT_NE(graph.communication(0), nullptr);
  EXPECT_EQ(graph.groups()[graph.communication(0)->group].name, "1");
  EXPECT_THAT(graph.groups()[graph.communication(0)->group].ranks, ElementsAre(1, 0));
}

TEST(ProcessGroupListTest, TheGroupOfAllRanksHasNoNameAndOthersAreNumbered) {
  ProcessGroupList list(4);
  EXPECT_EQ(list.Add({3, 2, 1, 0}), 0);
  EXPECT_EQ(list.Add({0, 2}), 1);
  EXPECT_EQ(list.Add({2, 0}), 2);
  EXPECT_EQ(list.Add({0, 2}), 1);
  ASSERT_EQ(list.groups().size(), 3);
  EXPECT_EQ(list.groups()[0].name, "");
  EXPECT_EQ(list.groups()[2].name, "2");
  EXPECT_THAT(list.groups()[2].ranks, ElementsAre(2, 0));
}

}  // namespace
}  // namespace meridian
