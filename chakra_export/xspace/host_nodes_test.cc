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
    profile_->call_names = {"launch"};
    graph_.rank_count = 1;
  }

  // Work and the call that launched it; times in ns.
  NodeIndex Add(int64_t call_start, int64_t call_end, int64_t start, int64_t end) {
    calls_.push_back({call_start * 1000, call_end * 1000, 0, 3});
    DeviceWork& work = work_.emplace_back();
    work.call = &calls_.back();
    RunNode node;
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
  std::deque<HostCall> calls_;
  std::deque<DeviceWork> work_;
  RunGraph graph_;
};

TEST_F(HostNodesTest, CallsLaunchAndTheTimeBetweenThemIsAGap) {
  const NodeIndex a = Add(100, 110, 120, 300);
  const NodeIndex b = Add(150, 160, 300, 400);
  AddHostNodes({profile_.get()}, &graph_);
  ASSERT_EQ(graph_.nodes.size(), 5);
  const NodeIndex call_a = 2, gap = 3, call_b = 4;
  EXPECT_TRUE(HasEdge(a, call_a, EdgeKind::kLaunch));
  EXPECT_TRUE(HasEdge(b, call_b, EdgeKind::kLaunch));
  EXPECT_TRUE(HasEdge(gap, call_a, EdgeKind::kProgram));
  EXPECT_TRUE(HasEdge(call_b, gap, EdgeKind::kProgram));
  EXPECT_EQ(graph_.nodes[gap].op_kind, kHostGapOpKind);
  EXPECT_EQ(graph_.nodes[gap].duration_ns, 40);
  EXPECT_EQ(graph_.nodes[call_a].name, "launch");
  EXPECT_TRUE(graph_.nodes[call_a].resource == (Resource{0, ResourceKind::kHostThread, 3}));
  EXPECT_EQ(graph_.edges.size(), 4);
}

TEST_F(HostNodesTest, AHostThatComesBackToAnIdleDeviceHasWaitedForIt) {
  const NodeIndex a = Add(100, 110, 120, 300);
  Add(350, 360, 370, 400);
  AddHostNodes({profile_.get()}, &graph_);
  const NodeIndex gap = 3;
  EXPECT_TRUE(HasEdge(gap, a, EdgeKind::kSync));
  EXPECT_EQ(graph_.nodes[gap].start_ns, 300);
  EXPECT_EQ(graph_.nodes[gap].duration_ns, 50);
  EXPECT_EQ(graph_.edges.size(), 5);
}

// The device still runs b when the host comes with c: it may have waited for a, or have been busy.
TEST_F(HostNodesTest, AHostThatIsKnownToWaitHasWaitedForTheLastThatHadEnded) {
  const NodeIndex a = Add(100, 110, 120, 300);
  const NodeIndex b = Add(120, 130, 300, 500);
  Add(350, 360, 500, 600);
  RunGraph busy = graph_;
  AddHostNodes({profile_.get()}, &busy);
  EXPECT_EQ(busy.nodes[6].duration_ns, 220);
  work_.back().host_waited = true;
  AddHostNodes({profile_.get()}, &graph_);
  const NodeIndex gap = 6;
  EXPECT_TRUE(HasEdge(gap, a, EdgeKind::kSync));
  EXPECT_FALSE(HasEdge(gap, b, EdgeKind::kSync));
  EXPECT_EQ(graph_.nodes[gap].start_ns, 300);
  EXPECT_EQ(graph_.nodes[gap].duration_ns, 50);
}

// The kernel of a permute is a send and a receive.
TEST_F(HostNodesTest, AHostWaitsForAllNodesOfAKernel) {
  const NodeIndex send = Add(100, 110, 120, 300);
  graph_.nodes[send].kernel = 5;
  graph_.nodes.push_back(graph_.nodes[send]);
  Add(350, 360, 370, 400);
  AddHostNodes({profile_.get()}, &graph_);
  const NodeIndex gap = 4;
  EXPECT_TRUE(HasEdge(gap, send, EdgeKind::kSync));
  EXPECT_TRUE(HasEdge(gap, send + 1, EdgeKind::kSync));
}

TEST_F(HostNodesTest, ACallIsOverWhenItsWorkStarts) {
  Add(100, 200, 120, 300);
  AddHostNodes({profile_.get()}, &graph_);
  EXPECT_EQ(graph_.nodes[1].duration_ns, 20);
}

}  // namespace
}  // namespace meridian
