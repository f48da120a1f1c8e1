#include "chakra_export/run/run_passes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunNode Node(int64_t rank, int64_t stream, int64_t start_ns) {
  RunNode node;
  node.name = "kernel";
  node.resource = {rank, ResourceKind::kStream, stream};
  node.start_ns = start_ns;
  node.end_ns = start_ns + 10;
  node.duration_ns = 10;
  return node;
}

// The last of its members starts at instance_start_ns.
RunNode Collective(int64_t rank, int64_t stream, int64_t start_ns, uint32_t instance,
                   int64_t instance_start_ns) {
  RunNode node = Node(rank, stream, start_ns);
  node.name = "all-reduce";
  node.type = ChakraProtoMsg::COMM_COLL_NODE;
  node.communication = std::make_shared<Communication>();
  node.instance = instance;
  node.instance_start_ns = instance_start_ns;
  return node;
}

RunNode Message(ChakraProtoMsg::NodeType type, int64_t rank, int64_t start_ns, uint32_t instance) {
  RunNode node = Node(rank, 0, start_ns);
  node.type = type;
  node.communication = std::make_shared<Communication>();
  node.instance = instance;
  return node;
}

TEST(GlobalOrderTest, ConcurrentCollectivesHaveOneOrderOnAllRanks) {
  // Rank 0 begins a first, rank 1 begins b first; b had all its members earlier.
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Collective(0, 0, 100, 7, 500), Collective(0, 1, 200, 8, 200),
                 Collective(1, 1, 150, 8, 200), Collective(1, 0, 500, 7, 500)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  AddCommunicationOrder(order, &graph);
  ASSERT_EQ(graph.edges.size(), 2);
  EXPECT_EQ(graph.edges[0].node, 0);
  EXPECT_EQ(graph.edges[0].source, 1);
  EXPECT_TRUE(graph.edges[0].kinds == EdgeKind::kControl);
  EXPECT_EQ(graph.edges[1].node, 3);
  EXPECT_EQ(graph.edges[1].source, 2);
}

TEST(GlobalOrderTest, RanksThatContradictEachOtherAreAnErrorThatNamesTheInstance) {
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Collective(0, 0, 100, 7, 200), Collective(0, 0, 200, 8, 200),
                 Collective(1, 0, 100, 8, 200), Collective(1, 0, 200, 7, 200)};
  graph.edges = {{1, 0, EdgeKind::kStream}, {3, 2, EdgeKind::kStream}};
  EXPECT_THAT(GlobalOrder(graph), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           AllOf(HasSubstr("all-reduce at 200 ns of ranks 0, 1"),
                                                 HasSubstr("different orders"))));
}

TEST(GlobalOrderTest, ReceivesComeAfterTheirSendsAndNeedNoSlot) {
  // A ring of two: both ranks send and receive in one kernel.
  RunGraph graph;
  graph.rank_count = 2;
  graph.nodes = {Message(ChakraProtoMsg::COMM_RECV_NODE, 0, 10, 1),
                 Message(ChakraProtoMsg::COMM_SEND_NODE, 0, 10, 2),
                 Message(ChakraProtoMsg::COMM_SEND_NODE, 1, 30, 1),
                 Message(ChakraProtoMsg::COMM_RECV_NODE, 1, 30, 2)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(1, 2, 0, 3));
  AddCommunicationOrder(order, &graph);
  EXPECT_TRUE(graph.edges.empty());
}

// Rank 1's clock is 1000 ns ahead: by its own, its collective came before its computation.
TEST(GlobalOrderTest, WhereRanksHaveClocksOfTheirOwnTimesCountFromTheirBegins) {
  RunGraph graph;
  graph.rank_count = 2;
  graph.has_one_clock = false;
  graph.nodes = {Node(0, 1, 0),    Collective(0, 0, 100, 7, 1100),  Node(0, 1, 500),
                 Node(1, 1, 1000), Collective(1, 0, 1100, 7, 1100), Node(1, 1, 1500)};
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeIndex> order, GlobalOrder(graph));
  EXPECT_THAT(order, ElementsAre(0, 3, 1, 4, 2, 5));
}

}  // namespace
}  // namespace meridian
