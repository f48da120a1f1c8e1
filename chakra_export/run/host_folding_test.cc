#include "chakra_export/run/run_passes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Thread 3 and streams of one rank.
class HostFoldingTest : public ::testing::Test {
 protected:
  NodeIndex Call(int64_t start_ns, int64_t thread = 3) {
    return Add({0, ResourceKind::kHostThread, thread}, start_ns, RunNode::kNoKernel);
  }
  NodeIndex Work(int64_t stream, int64_t start_ns) {
    return Add({0, ResourceKind::kStream, stream}, start_ns,
               static_cast<uint32_t>(graph_.nodes.size()));
  }
  NodeIndex Add(const Resource& resource, int64_t start_ns, uint32_t kernel) {
    RunNode node;
    node.resource = resource;
    node.start_ns = start_ns;
    node.kernel = kernel;
    graph_.nodes.push_back(node);
    return static_cast<NodeIndex>(graph_.nodes.size() - 1);
  }

  // Folds and returns the edges, "source>node:kinds".
  std::vector<std::string> Fold() {
    const absl::StatusOr<std::vector<NodeIndex>> order = GlobalOrder(graph_);
    EXPECT_OK(order);
    order_ = FoldHosts(*order, &graph_);
    std::vector<std::string> texts;
    for (const DependencyEdge& edge : graph_.edges) {
      texts.push_back(absl::StrCat(edge.source, ">", edge.node, ":", edge.kinds.Letters()));
    }
    return texts;
  }

  RunGraph graph_;
  std::vector<NodeIndex> order_;
};

TEST_F(HostFoldingTest, WhatAThreadWaitedForItsLaterLaunchesWaitFor) {
  const NodeIndex first = Call(0), a = Work(7, 10), second = Call(20), b = Work(16, 30);
  graph_.edges = {{a, first, EdgeKind::kLaunch},
                  {second, first, EdgeKind::kProgram},
                  {second, a, EdgeKind::kSync},
                  {b, second, EdgeKind::kLaunch}};
  EXPECT_THAT(Fold(), ElementsAre("1>3:w"));
  EXPECT_THAT(order_, ElementsAre(a, b));
}

// What was launched before the wait does not come after it, though it ran later.
TEST_F(HostFoldingTest, WorkKnowsOnlyWhatItsLaunchKnew) {
  const NodeIndex first = Call(0), a = Work(7, 10), second = Call(20), b = Work(16, 20);
  graph_.edges = {
      {a, first, EdgeKind::kLaunch}, {second, a, EdgeKind::kSync}, {b, first, EdgeKind::kLaunch}};
  EXPECT_THAT(Fold(), IsEmpty());
}

// Its stream runs in order, so that the second need not wait again.
TEST_F(HostFoldingTest, AStreamLearnsOnce) {
  const NodeIndex first = Call(0), a = Work(7, 10), second = Call(20), b = Work(16, 30),
                  third = Call(40), c = Work(16, 50);
  graph_.edges = {{a, first, EdgeKind::kLaunch},  {second, a, EdgeKind::kSync},
                  {b, second, EdgeKind::kLaunch}, {third, second, EdgeKind::kProgram},
                  {c, third, EdgeKind::kLaunch},  {c, b, EdgeKind::kStream}};
  EXPECT_THAT(Fold(), ElementsAre("1>3:w", "3>5:s"));
}

TEST_F(HostFoldingTest, AThreadKnowsWhatTheThreadKnewThatItWaitedFor) {
  const NodeIndex first = Call(0), a = Work(7, 10), second = Call(20), other = Call(30, 4),
                  b = Work(16, 40);
  graph_.edges = {{a, first, EdgeKind::kLaunch},
                  {second, a, EdgeKind::kSync},
                  {other, second, EdgeKind::kSync},
                  {b, other, EdgeKind::kLaunch}};
  EXPECT_THAT(Fold(), ElementsAre("1>4:w"));
}

// The kernel waited for is a send and a receive, and so is that which waits.
TEST_F(HostFoldingTest, AllNodesOfAKernelWaitForAllNodesOfTheOther) {
  const NodeIndex first = Call(0), a = Work(7, 10);
  graph_.nodes.push_back(graph_.nodes[a]);
  const NodeIndex second = Call(20), b = Work(16, 30);
  graph_.nodes.push_back(graph_.nodes[b]);
  graph_.edges = {{a, first, EdgeKind::kLaunch},  {a + 1, first, EdgeKind::kLaunch},
                  {second, a, EdgeKind::kSync},   {second, a + 1, EdgeKind::kSync},
                  {b, second, EdgeKind::kLaunch}, {b + 1, second, EdgeKind::kLaunch}};
  EXPECT_THAT(Fold(), ElementsAre("1>4:w", "2>4:w", "1>5:w", "2>5:w"));
}

}  // namespace
}  // namespace meridian
