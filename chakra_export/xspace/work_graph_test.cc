#include "chakra_export/xspace/work_graph.h"

#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WorkGraphTest : public ::testing::Test {
 protected:
  WorkGraphTest() {
    graph_.groups = {{"", {0, 1}}, {"1", {1, 0}}};
    graph_.rank_count = 2;
  }

  NodeIndex Add(int64_t rank, int64_t stream, const DeviceWork* work) {
    WorkNode node;
    node.name = "kernel";
    node.resource = {rank, ResourceKind::kStream, stream};
    node.start_ns = static_cast<int64_t>(graph_.nodes.size());
    node.duration_ns = 5;
    node.work = work;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }
  // Of a kernel of its own.
  NodeIndex Add(int64_t rank, int64_t stream) { return Add(rank, stream, &work_.emplace_back()); }

  // "source>node:kinds".
  std::vector<std::string> Edges() const {
    std::vector<std::string> texts;
    for (const DependencyEdge& edge : graph_.edges) {
      texts.push_back(absl::StrCat(edge.source, ">", edge.node, ":", edge.kinds.Letters()));
    }
    return texts;
  }

  std::deque<DeviceWork> work_;
  WorkGraph graph_;
};

TEST_F(WorkGraphTest, StreamsOfEachRankAreChains) {
  Add(0, 7);  // 0
  Add(0, 8);  // 1
  Add(0, 7);  // 2
  Add(1, 7);  // 3
  Add(0, 8);  // 4
  Add(1, 7);  // 5
  AddStreamOrder(&graph_);
  EXPECT_THAT(Edges(), ElementsAre("0>2:s", "1>4:s", "3>5:s"));
}

// The kernel of a permute is a send and a receive: both wait for what came before it, neither for
// the other, and what comes next waits for both.
TEST_F(WorkGraphTest, TheNodesOfOneKernelBeginTogether) {
  Add(0, 7);  // 0
  const DeviceWork& permute = work_.emplace_back();
  Add(0, 7, &permute);  // 1
  Add(0, 7, &permute);  // 2
  Add(0, 7);            // 3
  Add(0, 7);            // 4
  AddStreamOrder(&graph_);
  EXPECT_THAT(Edges(), ElementsAre("0>1:s", "0>2:s", "1>3:s", "2>3:s", "3>4:s"));
}

TEST_F(WorkGraphTest, SourcesAreListedByNode) {
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
TEST_F(WorkGraphTest, TheOrderGivesTheIds) {
  const NodeIndex a = Add(0, 7);
  const NodeIndex b = Add(1, 7);
  const NodeIndex c = Add(0, 8);
  WorkNode& reduce = graph_.nodes[c];
  reduce.type = ChakraProtoMsg::COMM_COLL_NODE;
  reduce.communication.emplace();
  reduce.communication->bytes = 64;
  reduce.communication->group = 1;
  graph_.edges = {{a, c, EdgeKind::kData}};
  const ExecutionGraph graph = ToExecutionGraph(graph_, {c, b, a});
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(ProcessGroupListTest, MoreGroupsThanAstraSimTellsApartAreRefused) {
  ProcessGroupList list(2000);
  for (int64_t i = 0; i < 499; ++i) list.Add({i, i + 1});
  EXPECT_THAT(list.Check(), IsOk());
  list.Add({1000, 1001});
  EXPECT_THAT(list.Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("500 groups")));
}

class WorkMergeTest : public ::testing::Test {
 protected:
  void Add(absl::string_view hlo_op, int64_t stream, int64_t start_ns, int64_t end_ns,
           int64_t step = 1) {
    DeviceWork& work = work_.emplace_back();
    work.hlo_op = hlo_op;
    work.step = step;
    WorkNode node;
    node.name = hlo_op;
    node.resource = {0, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.duration_ns = end_ns - start_ns;
    node.work = &work;
    node.pieces = 1;
    graph_.nodes.push_back(node);
  }
  void AddCommunication(int64_t stream, int64_t start_ns, int64_t end_ns) {
    Add("all-reduce", stream, start_ns, end_ns);
    graph_.nodes.back().type = ChakraProtoMsg::COMM_COLL_NODE;
    graph_.nodes.back().communication.emplace();
  }

  std::deque<DeviceWork> work_;
  WorkGraph graph_;
};

TEST_F(WorkMergeTest, KernelsOfOneInstructionBecomeOneFromFirstStartToLastEnd) {
  Add("dot.1", 7, 0, 10);
  Add("dot.1", 7, 12, 20);
  Add("add.1", 7, 21, 30);
  graph_.edges = {{1, 0, EdgeKind::kStream}, {2, 1, EdgeKind::kStream}};
  MergeWork(WorkGranularity::kHlo, &graph_);
  ASSERT_EQ(graph_.nodes.size(), 2);
  EXPECT_EQ(graph_.nodes[0].duration_ns, 20);
  EXPECT_EQ(graph_.nodes[0].pieces, 2);
  ASSERT_EQ(graph_.edges.size(), 1);
  EXPECT_EQ(graph_.edges[0].node, 1);
  EXPECT_EQ(graph_.edges[0].source, 0);
}

TEST_F(WorkMergeTest, KernelsAreLeftAloneByDefault) {
  Add("dot.1", 7, 0, 10);
  Add("dot.1", 7, 12, 20);
  MergeWork(WorkGranularity::kKernel, &graph_);
  EXPECT_EQ(graph_.nodes.size(), 2);
}

TEST_F(WorkMergeTest, AStepIsCutWhereCommunicationBeginsAndEnds) {
  Add("a", 7, 0, 10);
  Add("b", 8, 5, 20);
  AddCommunication(9, 21, 40);
  Add("c", 7, 22, 30);
  Add("d", 7, 31, 39);
  // Waits for the communication.
  Add("e", 7, 41, 50);
  MergeWork(WorkGranularity::kStep, &graph_);
  ASSERT_EQ(graph_.nodes.size(), 4);
  EXPECT_EQ(graph_.nodes[0].duration_ns, 20);
  EXPECT_EQ(graph_.nodes[0].op_kind, kStepOpKind);
  EXPECT_TRUE(graph_.nodes[1].IsCommunication());
  EXPECT_EQ(graph_.nodes[2].duration_ns, 17);
  EXPECT_EQ(graph_.nodes[3].duration_ns, 9);
}

TEST_F(WorkMergeTest, AJointNodeCostsWhatItsPiecesDo) {
  for (const WorkGranularity granularity : {WorkGranularity::kHlo, WorkGranularity::kStep}) {
    graph_ = WorkGraph();
    Add("a", 7, 0, 10);
    graph_.nodes.back().operations = 5;
    graph_.nodes.back().bytes = 100;
    Add("a", 7, 11, 20);
    graph_.nodes.back().operations = 7;
    graph_.nodes.back().bytes = std::numeric_limits<int64_t>::max();
    MergeWork(granularity, &graph_);
    ASSERT_EQ(graph_.nodes.size(), 1);
    EXPECT_EQ(graph_.nodes[0].operations, 12);
    EXPECT_EQ(graph_.nodes[0].bytes, std::numeric_limits<int64_t>::max());
  }
}

TEST_F(WorkMergeTest, StepsStayApart) {
  Add("a", 7, 0, 10, 1);
  Add("b", 7, 11, 20, 2);
  MergeWork(WorkGranularity::kStep, &graph_);
  EXPECT_EQ(graph_.nodes.size(), 2);
}

}  // namespace
}  // namespace meridian
