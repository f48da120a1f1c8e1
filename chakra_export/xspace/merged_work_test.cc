#include "chakra_export/xspace/work_nodes.h"

#include <deque>
#include <limits>

#include "chakra_export/xspace/device_work.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

class WorkMergeTest : public ::testing::Test {
 protected:
  void Add(absl::string_view hlo_op, int64_t stream, int64_t start_ns, int64_t end_ns,
           int64_t step = 1) {
    DeviceWork& work = work_.emplace_back();
    ops_.emplace_back().hlo_op = hlo_op;
    work.op = &ops_.back();
    work.step = step;
    RunNode node;
    node.name = hlo_op;
    node.resource = {0, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.duration_ns = end_ns - start_ns;
    node.work = &work;
    graph_.nodes.push_back(node);
  }
  void AddCommunication(int64_t stream, int64_t start_ns, int64_t end_ns) {
    Add("all-reduce", stream, start_ns, end_ns);
    graph_.nodes.back().type = ChakraProtoMsg::COMM_COLL_NODE;
    graph_.nodes.back().communication = std::make_shared<Communication>();
  }

  std::deque<DeviceOp> ops_;
  std::deque<DeviceWork> work_;
  RunGraph graph_;
};

TEST_F(WorkMergeTest, KernelsOfOneInstructionBecomeOneFromFirstStartToLastEnd) {
  Add("dot.1", 7, 0, 10);
  Add("dot.1", 7, 12, 20);
  Add("add.1", 7, 21, 30);
  graph_.edges = {{1, 0, EdgeKind::kStream}, {2, 1, EdgeKind::kStream}};
  MergeWork(WorkGranularity::kHlo, &graph_);
  ASSERT_EQ(graph_.nodes.size(), 2);
  EXPECT_EQ(graph_.nodes[0].duration_ns, 20);
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
    graph_ = RunGraph();
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
