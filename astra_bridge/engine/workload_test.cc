#include "astra_bridge/engine/workload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RankWorkloadTest, KeepsNodesAndTheirDependencies) {
  RankWorkload rank;
  rank.Reserve(/*nodes=*/3, /*dependencies=*/3);
  WorkloadNode node;
  node.id = 1;
  rank.Add(node);
  node.id = 2;
  rank.Add(node, {1, 3});
  node.id = 3;
  rank.Add(node, {1});
  EXPECT_THAT(rank.nodes(), SizeIs(3));
  EXPECT_EQ(rank.nodes()[1].id, 2u);
  EXPECT_THAT(rank.dependencies(0), IsEmpty());
  EXPECT_THAT(rank.dependencies(1), ElementsAre(1, 3));
  EXPECT_THAT(rank.dependencies(2), ElementsAre(1));
}

}  // namespace
}  // namespace meridian
