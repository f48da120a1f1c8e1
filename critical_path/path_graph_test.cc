#include "critical_path/path_graph.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(PathGraphTest, NamesAreThoseOfReports) {
  EXPECT_EQ(EdgeTypeName(EdgeType::kKernelLaunchDelay), "kernel_launch_delay");
  EXPECT_EQ(BoundByName(BoundBy::kOtherRanks), "wait_for_other_ranks");
  EXPECT_EQ(BoundByName(BoundBy::kNothing), "");
}

TEST(PathGraphTest, NamesAreDistinct) {
  std::set<std::string> names;
  for (int i = 0; i < kNumEdgeTypes; ++i) {
    names.insert(std::string(EdgeTypeName(static_cast<EdgeType>(i))));
  }
  for (int i = 0; i < kNumBoundBy; ++i) {
    names.insert(std::string(BoundByName(static_cast<BoundBy>(i))));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumEdgeTypes + kNumBoundBy));
}

TEST(PathGraphTest, CountsNodesThatHaveEdges) {
  PathGraph graph;
  graph.nodes.resize(5);
  EXPECT_EQ(CountJoinedNodes(graph), 0);
  graph.edges = {{0, 3, 1, kNoEvent, EdgeType::kOperator, BoundBy::kCpu},
                 {3, 4, 1, kNoEvent, EdgeType::kOperator, BoundBy::kCpu}};
  EXPECT_EQ(CountJoinedNodes(graph), 3);
}

}  // namespace
}  // namespace meridian
