#include "astra_bridge/engine/fixed_durations.h"

#include "astra_bridge/engine/testing/builders.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(FixedDurationsTest, OnlyNodesThatWereGivenOneHaveOne) {
  Workload workload = EveryRank(2, ComputeNode(1, 10));
  workload.ranks[1].Add(SendNode(2, 0, 8));
  FixedDurations durations(workload);
  EXPECT_EQ(durations.Find(1, 1), std::nullopt);
  durations.Set(1, 1, 0);
  EXPECT_EQ(durations.Find(1, 1), 0);
  EXPECT_EQ(durations.Find(1, 0), std::nullopt);
  EXPECT_EQ(durations.Find(0, 0), std::nullopt);
}

}  // namespace
}  // namespace meridian
