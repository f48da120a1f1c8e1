#include "chakra_export/generate/work_cost.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

// 2 TFLOPS are 2,000 operations in a nanosecond.
TEST(WorkCostTest, DurationIsOperationsAtASpeed) {
  EXPECT_EQ(DurationNs({6000000, 1}, 2), 3000);
  EXPECT_EQ(DurationNs({0, 1}, 2), 0);
}

TEST(WorkCostTest, DurationIsTheNearestNanosecond) {
  EXPECT_EQ(DurationNs({999, 1}, 2), 0);
  EXPECT_EQ(DurationNs({1001, 1}, 2), 1);
  EXPECT_EQ(DurationNs({2999, 1}, 2), 1);
  EXPECT_EQ(DurationNs({500, 1}, 0.5), 1);
}

}  // namespace
}  // namespace meridian
