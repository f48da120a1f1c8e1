#include "chakra_export/generate/generated_workload.h"

#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

// Three computations in a row, of which the last also uses the first.
class Row : public GeneratedWorkload {
 public:
  int64_t rank_count() const override { return 2; }
  int64_t node_count() const override { return 6; }
  void AddRank(int64_t rank, RankProgram* program) const override {
    const NodeIndex first = program->Compute("first", {1, 1}, 10 + rank, {});
    program->Compute("second", {1, 1}, 20, {});
    program->Compute("third", {1, 1}, 30, {first});
  }
};

TEST(GeneratedWorkloadTest, TheGraphHasAllRanksAndNoEdgesThatOthersImply) {
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph, BuildWorkloadGraph(Row()));
  ASSERT_EQ(graph.node_count(), 6u);
  EXPECT_THAT(graph.Ranks(), ElementsAre(0, 1));
  EXPECT_EQ(graph.duration_ns(3), 11);
  EXPECT_THAT(graph.dependencies(2), ElementsAre(1));
  EXPECT_THAT(graph.dependencies(5), ElementsAre(4));
  EXPECT_EQ(graph.dependency_count(), 4u);
}

}  // namespace
}  // namespace meridian
