#include "astra_bridge/calibration/compute_beside.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

// Two ranks that each have a stream for computation and one for communication.
class Ranks {
 public:
  Ranks() {
    ProcessGroup world;
    world.ranks = {0, 1};
    world_ = builder_.AddGroup(world);
  }

  void Compute(int64_t rank, int64_t start_ns, int64_t end_ns) {
    Add(rank, 1, start_ns, end_ns, "fusion", ChakraProtoMsg::COMP_NODE, std::nullopt);
    computes_.back() = true;
  }

  // A COMP node that is no computation.
  void Wait(int64_t rank, int64_t start_ns, int64_t end_ns) {
    Add(rank, 1, start_ns, end_ns, "idle", ChakraProtoMsg::COMP_NODE, std::nullopt);
  }

  void AllReduce(int64_t rank, int64_t bytes, int64_t start_ns, int64_t end_ns) {
    Communication communication;
    communication.bytes = bytes;
    communication.group = world_;
    Add(rank, 2, start_ns, end_ns, "all-reduce", ChakraProtoMsg::COMM_COLL_NODE, communication);
  }

  void Message(int64_t bytes, int64_t start_ns, int64_t end_ns) {
    Communication communication;
    communication.bytes = bytes;
    communication.source = 0;
    communication.target = 1;
    Add(0, 2, start_ns, end_ns, "send", ChakraProtoMsg::COMM_SEND_NODE, communication);
    Add(1, 2, start_ns, end_ns, "recv", ChakraProtoMsg::COMM_RECV_NODE, communication);
  }

  ComputeBeside Look() {
    const ExecutionGraph graph = std::move(builder_).Build();
    const CommunicationMatch match(graph);
    ComputeBeside beside;
    const absl::StatusOr<WorkloadEdges> edges = FindWorkloadEdges(graph, match);
    EXPECT_OK(edges);
    if (edges.ok()) beside.Add(graph, computes_, match, *edges);
    return beside;
  }

 private:
  void Add(int64_t rank, int64_t stream, int64_t start_ns, int64_t end_ns, const std::string& name,
           ChakraProtoMsg::NodeType type, std::optional<Communication> communication) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = name;
    node.type = type;
    node.resource = builder_.AddResource({rank, ResourceKind::kStream, stream});
    node.start_ns = start_ns;
    node.duration_ns = end_ns - start_ns;
    node.communication = communication;
    builder_.AddNode(node);
    computes_.push_back(false);
  }

  ExecutionGraphBuilder builder_;
  std::vector<bool> computes_;
  GroupIndex world_ = 0;
  uint64_t last_id_ = 0;
};

TransferCell Cell(CollectiveKind kind, int64_t bytes) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = 2;
  cell.participants = {0, 1};
  return cell;
}

TEST(ComputeBesideTest, OnlyWhatTheSameRankComputesCounts) {
  Ranks ranks;
  ranks.AllReduce(0, 64, 100, 200);
  ranks.AllReduce(1, 64, 100, 200);
  // 30 of rank 0's 100, in pieces that overlap; nothing of rank 1's.
  ranks.Compute(0, 90, 120);
  ranks.Compute(0, 110, 130);
  ranks.Compute(1, 0, 100);
  ranks.Compute(1, 200, 300);
  const ComputeBeside beside = ranks.Look();
  EXPECT_THAT(beside.ShareOf(Cell(CollectiveKind::kAllReduce, 64)), Optional(DoubleEq(0.15)));
  EXPECT_THAT(beside.ShareOfAll(), DoubleEq(0.15));
}

TEST(ComputeBesideTest, CellsAreLookedAtByThemselves) {
  Ranks ranks;
  for (int64_t rank : {0, 1}) {
    ranks.AllReduce(rank, 64, 100, 200);
    ranks.AllReduce(rank, 128, 300, 600);
    ranks.Compute(rank, 150, 200);
  }
  ranks.Message(32, 1000, 1100);
  ranks.Compute(1, 1000, 1100);
  const ComputeBeside beside = ranks.Look();
  EXPECT_THAT(beside.ShareOf(Cell(CollectiveKind::kAllReduce, 64)), Optional(DoubleEq(0.5)));
  EXPECT_THAT(beside.ShareOf(Cell(CollectiveKind::kAllReduce, 128)), Optional(DoubleEq(0)));
  EXPECT_THAT(beside.ShareOf(Cell(CollectiveKind::kPointToPoint, 32)), Optional(DoubleEq(0.5)));
  EXPECT_EQ(beside.ShareOf(Cell(CollectiveKind::kAllGather, 64)), std::nullopt);
  // 200 of 1,000.
  EXPECT_THAT(beside.ShareOfAll(), DoubleEq(0.2));
}

TEST(ComputeBesideTest, StepsAddUp) {
  Ranks idle, busy;
  for (int64_t rank : {0, 1}) {
    idle.AllReduce(rank, 64, 100, 200);
    busy.AllReduce(rank, 64, 100, 200);
    busy.Compute(rank, 100, 200);
  }
  ComputeBeside beside = idle.Look();
  beside.Add(busy.Look());
  EXPECT_THAT(beside.ShareOf(Cell(CollectiveKind::kAllReduce, 64)), Optional(DoubleEq(0.5)));
  EXPECT_EQ(ComputeBeside().ShareOfAll(), 0);
}

TEST(ComputeBesideTest, OnlyNodesThatComputeCount) {
  Ranks ranks;
  for (int64_t rank : {0, 1}) {
    ranks.AllReduce(rank, 64, 100, 200);
    ranks.Wait(rank, 100, 200);
    ranks.Compute(rank, 150, 160);
  }
  EXPECT_THAT(ranks.Look().ShareOfAll(), DoubleEq(0.1));
}

ChakraProtoMsg::Node NodeOfKind(absl::string_view op_kind) {
  ChakraProtoMsg::Node node;
  node.set_name("fusion");
  node.set_type(ChakraProtoMsg::COMP_NODE);
  if (!op_kind.empty()) SetStringAttribute(kOpKindAttribute, op_kind, node.mutable_attr());
  return node;
}

TEST(ComputeBesideTest, CompNodesMayBeGapsOrCommunication) {
  EXPECT_THAT(IsComputation(NodeOfKind("")), IsOkAndHolds(true));
  EXPECT_THAT(IsComputation(NodeOfKind(kMemcpyOpKind)), IsOkAndHolds(true));
  EXPECT_THAT(IsComputation(NodeOfKind(kHostGapOpKind)), IsOkAndHolds(false));
  EXPECT_THAT(IsComputation(NodeOfKind(kUnmatchedOpKind)), IsOkAndHolds(false));
  EXPECT_THAT(IsComputation(NodeOfKind(kLocalOpKind)), IsOkAndHolds(false));
  ChakraProtoMsg::Node collective = NodeOfKind("");
  collective.set_type(ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_THAT(IsComputation(collective), IsOkAndHolds(false));
}

}  // namespace
}  // namespace meridian
