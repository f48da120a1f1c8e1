#include "chakra_export/xspace/host_nodes.h"

#include <deque>
#include <memory>
#include <string>

#include "chakra_export/et/et_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

class HostNodesTest : public ::testing::Test {
 protected:
  HostNodesTest() {
    bytes_ = SyntheticRun({})[0].SerializeAsString();
    profile_ = std::make_unique<ProfileWork>(*XSpaceReader::FromBytes(bytes_, "profile"));
    graph_.rank_count = 1;
  }

  // Work and the call that launched it; times in ns.
  NodeIndex Add(uint64_t correlation, int64_t call_start, int64_t call_end, int64_t start,
                int64_t end) {
    profile_->calls[correlation] = {"launch", 3, call_start * 1000, call_end * 1000};
    DeviceWork& work = work_.emplace_back();
    work.correlation = correlation;
    WorkNode node;
    node.name = "kernel";
    node.resource = {0, ResourceKind::kStream, 7};
    node.start_ns = start;
    node.end_ns = end;
    node.work = &work;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }

  bool HasEdge(NodeIndex node, NodeIndex source, EdgeKind kind) const {
    for (const DependencyEdge& edge : graph_.edges) {
      if (edge.node == node && edge.source == source && edge.kinds == kind) return true;
    }
    return false;
  }

  std::string bytes_;
  std::unique_ptr<ProfileWork> profile_;
  std::deque<DeviceWork> work_;
  WorkGraph graph_;
};

TEST_F(HostNodesTest, CallsLaunchAndTheTimeBetweenThemIsAGap) {
  const NodeIndex a = Add(1, 100, 110, 120, 300);
  const NodeIndex b = Add(2, 150, 160, 300, 400);
  AddHostNodes({profile_.get()}, &graph_);
  ASSERT_EQ(graph_.nodes.size(), 5);
  const NodeIndex call_a = 2, gap = 3, call_b = 4;
  EXPECT_TRUE(HasEdge(a, call_a, EdgeKind::kLaunch));
  EXPECT_TRUE(HasEdge(b, call_b, EdgeKind::kLaunch));
  EXPECT_TRUE(HasEdge(gap, call_a, EdgeKind::kProgram));
  EXPECT_TRUE(HasEdge(call_b, gap, EdgeKind::kProgram));
  EXPECT_EQ(graph_.nodes[gap].op_kind, kHostGapOpKind);
  EXPECT_EQ(graph_.nodes[gap].duration_ns, 40);
  EXPECT_TRUE(graph_.nodes[call_a].resource == (Resource{0, ResourceKind::kHostThread, 3}));
  EXPECT_EQ(graph_.edges.size(), 4);
}

TEST_F(HostNodesTest, AHostThatComesBackToAnIdleDeviceHasWaitedForIt) {
  const NodeIndex a = Add(1, 100, 110, 120, 300);
  Add(2, 350, 360, 370, 400);
  AddHostNodes({profile_.get()}, &graph_);
  const NodeIndex gap = 3;
  EXPECT_TRUE(HasEdge(gap, a, EdgeKind::kSync));
  EXPECT_EQ(graph_.nodes[gap].start_ns, 300);
  EXPECT_EQ(graph_.nodes[gap].duration_ns, 50);
}

TEST_F(HostNodesTest, ACallIsOverWhenItsWorkStarts) {
  Add(1, 100, 200, 120, 300);
  AddHostNodes({profile_.get()}, &graph_);
  EXPECT_EQ(graph_.nodes[1].duration_ns, 20);
}

using ::testing::ElementsAre;

constexpr int64_t kUs = 1000;

class HostGapsTest : public ::testing::Test {
 protected:
  // Launched so long before its start.
  NodeIndex Add(int64_t rank, int64_t stream, int64_t start_ns, int64_t end_ns,
                int64_t launched_ns_before) {
    DeviceWork& work = work_.emplace_back();
    work.start_ps = start_ns * 1000;
    work.launch_ps = (start_ns - launched_ns_before) * 1000;
    WorkNode node;
    node.name = "kernel";
    node.resource = {rank, ResourceKind::kStream, stream};
    node.start_ns = start_ns;
    node.end_ns = end_ns;
    node.duration_ns = end_ns - start_ns;
    node.work = &work;
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

  std::deque<DeviceWork> work_;
  WorkGraph graph_;
};

TEST_F(HostGapsTest, AHostThatComesLateIsAGapAfterWhatTheDeviceDidLast) {
  graph_.rank_count = 1;
  const NodeIndex a = Add(0, 7, 0, 10 * kUs, 1 * kUs);
  // Launched at 25 us, when the device was idle.
  const NodeIndex b = Add(0, 7, 30 * kUs, 40 * kUs, 5 * kUs);
  graph_.edges = {{b, a, EdgeKind::kStream}};
  const std::vector<NodeIndex> order = AddHostGaps({a, b}, &graph_);
  ASSERT_THAT(order, ElementsAre(a, 2, b));
  const WorkNode& gap = graph_.nodes[2];
  EXPECT_EQ(gap.op_kind, kHostGapOpKind);
  EXPECT_EQ(gap.start_ns, 10 * kUs);
  EXPECT_EQ(gap.duration_ns, 20 * kUs);
  EXPECT_TRUE(KindsOf(2, a) == (EdgeKinds(EdgeKind::kSync) | EdgeKind::kStream));
  EXPECT_TRUE(KindsOf(b, 2) == EdgeKind::kLaunch);
}

TEST_F(HostGapsTest, WorkThatWasQueuedInTimeDidNotMakeTheHostWait) {
  graph_.rank_count = 1;
  const NodeIndex a = Add(0, 7, 0, 10 * kUs, 1 * kUs);
  // Launched at 4 us, while a ran.
  const NodeIndex b = Add(0, 7, 12 * kUs, 20 * kUs, 8 * kUs);
  graph_.edges = {{b, a, EdgeKind::kStream}};
  AddHostGaps({a, b}, &graph_);
  EXPECT_TRUE(KindsOf(2, a) == (EdgeKinds(EdgeKind::kProgram) | EdgeKind::kStream));
}

TEST_F(HostGapsTest, ShortGapsAddUpToOne) {
  graph_.rank_count = 1;
  // 600 ns between kernels: the replay is 600 ns ahead after the first, 1,200 after the second.
  const NodeIndex a = Add(0, 7, 0, 10000, 100);
  const NodeIndex b = Add(0, 7, 10600, 20600, 100);
  const NodeIndex c = Add(0, 7, 21200, 30000, 100);
  graph_.edges = {{b, a, EdgeKind::kStream}, {c, b, EdgeKind::kStream}};
  const std::vector<NodeIndex> order = AddHostGaps({a, b, c}, &graph_);
  ASSERT_THAT(order, ElementsAre(a, b, 3, c));
  EXPECT_EQ(graph_.nodes[3].duration_ns, 1200);
}

TEST_F(HostGapsTest, AGapDoesNotOccupyADeviceThatComputes) {
  graph_.rank_count = 1;
  const NodeIndex a = Add(0, 7, 0, 100 * kUs, 1 * kUs);
  // Another stream, while the first is busy.
  const NodeIndex b = Add(0, 8, 50 * kUs, 60 * kUs, 1 * kUs);
  EXPECT_THAT(AddHostGaps({a, b}, &graph_), ElementsAre(a, b));
}

TEST_F(HostGapsTest, RanksThatStartLaterBeginWithAGap) {
  graph_.rank_count = 2;
  const NodeIndex a = Add(0, 7, 5 * kUs, 10 * kUs, 1 * kUs);
  const NodeIndex b = Add(1, 7, 9 * kUs, 10 * kUs, 1 * kUs);
  ASSERT_THAT(AddHostGaps({a, b}, &graph_), ElementsAre(a, 2, b));
  EXPECT_EQ(graph_.nodes[2].resource.rank, 1);
  EXPECT_EQ(graph_.nodes[2].duration_ns, 4 * kUs);
}

TEST_F(HostGapsTest, NothingCommunicatesAtTimeZeroAndTwinsShareTheirGap) {
  graph_.rank_count = 1;
  const NodeIndex send = Add(0, 7, 0, 10 * kUs, 1 * kUs);
  graph_.nodes[send].type = ChakraProtoMsg::COMM_SEND_NODE;
  graph_.nodes[send].communication.emplace();
  WorkNode receive = graph_.nodes[send];
  receive.type = ChakraProtoMsg::COMM_RECV_NODE;
  graph_.nodes.push_back(receive);
  ASSERT_THAT(AddHostGaps({send, 1}, &graph_), ElementsAre(2, send, 1));
  EXPECT_EQ(graph_.nodes[2].duration_ns, 0);
  EXPECT_TRUE(KindsOf(send, 2) == EdgeKind::kLaunch);
  EXPECT_TRUE(KindsOf(1, 2) == EdgeKind::kLaunch);
}

}  // namespace
}  // namespace meridian
