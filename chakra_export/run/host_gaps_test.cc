#include "chakra_export/run/run_passes.h"

#include <vector>

#include "chakra_export/et/et_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kUs = 1000;

class HostGapsTest : public ::testing::Test {
 protected:
  NodeIndex Add(int64_t rank, int64_t stream, int64_t start_ns, int64_t end_ns) {
    RunNode node;
    node.name = "kernel";
    node.resource = {rank, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.duration_ns = end_ns - start_ns;
    node.kernel = static_cast<uint32_t>(graph_.nodes.size());
    node.is_launched = true;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }

  EdgeKinds KindsOf(NodeIndex node, NodeIndex source) const {
    EdgeKinds kinds;
    for (const DependencyEdge& edge : graph_.edges) {
      if (edge.node == node && edge.source == source) kinds |= edge.kinds;
    }
    return kinds;
  }

  RunGraph graph_;
};

TEST_F(HostGapsTest, AHostThatComesLateIsAGapAfterWhatTheDeviceDidLast) {
  const NodeIndex a = Add(0, 7, 0, 10 * kUs);
  const NodeIndex b = Add(0, 7, 30 * kUs, 40 * kUs);
  graph_.edges = {{b, a, EdgeKind::kStream}};
  const std::vector<NodeIndex> order = AddHostGaps({a, b}, &graph_);
  ASSERT_THAT(order, ElementsAre(a, 2, b));
  const RunNode& gap = graph_.nodes[2];
  EXPECT_EQ(gap.op_kind, kHostGapOpKind);
  EXPECT_EQ(gap.start_ns, 10 * kUs);
  EXPECT_EQ(gap.duration_ns, 20 * kUs);
  EXPECT_TRUE(KindsOf(2, a) == (EdgeKinds(EdgeKind::kProgram) | EdgeKind::kStream));
  EXPECT_TRUE(KindsOf(b, 2) == EdgeKind::kLaunch);
}

// Nobody knows its launch: it may have waited for the communication of another stream, too. Work
// with a launch says what it waited for.
TEST_F(HostGapsTest, WorkWithoutALaunchMayHaveWaitedForAnyWork) {
  for (const bool is_launched : {false, true}) {
    graph_ = RunGraph();
    const NodeIndex a = Add(0, 7, 0, 10 * kUs);
    const NodeIndex reduce = Add(0, 8, 0, 20 * kUs);
    graph_.nodes[reduce].communication = std::make_shared<Communication>();
    const NodeIndex b = Add(0, 7, 30 * kUs, 40 * kUs);
    graph_.nodes[b].is_launched = is_launched;
    graph_.edges = {{b, a, EdgeKind::kStream}};
    const std::vector<NodeIndex> order = AddHostGaps({a, reduce, b}, &graph_);
    ASSERT_THAT(order, ElementsAre(a, reduce, 3, b));
    EXPECT_EQ(graph_.nodes[3].start_ns, is_launched ? 10 * kUs : 20 * kUs);
  }
}

// The host's call is there: a launch takes a moment, but not 20 us.
TEST_F(HostGapsTest, AfterItsCallWorkStartsWithinAMoment) {
  for (const int64_t start_us : {25, 35}) {
    graph_ = RunGraph();
    const NodeIndex call = Add(0, 3, 0, 10 * kUs);
    graph_.nodes[call].resource.kind = ResourceKind::kHostThread;
    graph_.nodes[call].kernel = RunNode::kNoKernel;
    const NodeIndex a = Add(0, 7, start_us * kUs, 40 * kUs);
    graph_.edges = {{a, call, EdgeKind::kLaunch}};
    EXPECT_EQ(AddHostGaps({call, a}, &graph_).size(), start_us == 25 ? 2u : 3u);
  }
}

TEST_F(HostGapsTest, RanksWithClocksOfTheirOwnBeginAtOnce) {
  const NodeIndex a = Add(0, 7, 5 * kUs, 10 * kUs);
  const NodeIndex b = Add(1, 7, 9 * kUs, 10 * kUs);
  graph_.has_one_clock = false;
  EXPECT_THAT(AddHostGaps({a, b}, &graph_), ElementsAre(a, b));
}

TEST_F(HostGapsTest, ShortGapsAddUpToOne) {
  // 600 ns between kernels: the replay is 600 ns ahead after the first, 1,200 after the second.
  const NodeIndex a = Add(0, 7, 0, 10000);
  const NodeIndex b = Add(0, 7, 10600, 20600);
  const NodeIndex c = Add(0, 7, 21200, 30000);
  graph_.edges = {{b, a, EdgeKind::kStream}, {c, b, EdgeKind::kStream}};
  const std::vector<NodeIndex> order = AddHostGaps({a, b, c}, &graph_);
  ASSERT_THAT(order, ElementsAre(a, b, 3, c));
  EXPECT_EQ(graph_.nodes[3].duration_ns, 1200);
}

TEST_F(HostGapsTest, AGapDoesNotOccupyADeviceThatComputes) {
  const NodeIndex a = Add(0, 7, 0, 100 * kUs);
  // Another stream, while the first is busy.
  const NodeIndex b = Add(0, 8, 50 * kUs, 60 * kUs);
  EXPECT_THAT(AddHostGaps({a, b}, &graph_), ElementsAre(a, b));
}

TEST_F(HostGapsTest, RanksThatStartLaterBeginWithAGap) {
  const NodeIndex a = Add(0, 7, 5 * kUs, 10 * kUs);
  const NodeIndex b = Add(1, 7, 9 * kUs, 10 * kUs);
  ASSERT_THAT(AddHostGaps({a, b}, &graph_), ElementsAre(a, 2, b));
  EXPECT_EQ(graph_.nodes[2].resource.rank, 1);
  EXPECT_EQ(graph_.nodes[2].duration_ns, 4 * kUs);
}

TEST_F(HostGapsTest, NothingCommunicatesAtTimeZeroAndTwinsShareTheirGap) {
  const NodeIndex send = Add(0, 7, 0, 10 * kUs);
  graph_.nodes[send].type = ChakraProtoMsg::COMM_SEND_NODE;
  graph_.nodes[send].communication = std::make_shared<Communication>();
  RunNode receive = graph_.nodes[send];
  receive.type = ChakraProtoMsg::COMM_RECV_NODE;
  graph_.nodes.push_back(receive);
  ASSERT_THAT(AddHostGaps({send, 1}, &graph_), ElementsAre(2, send, 1));
  EXPECT_EQ(graph_.nodes[2].duration_ns, 0);
  EXPECT_TRUE(KindsOf(send, 2) == EdgeKind::kLaunch);
  EXPECT_TRUE(KindsOf(1, 2) == EdgeKind::kLaunch);
}

}  // namespace
}  // namespace meridian
