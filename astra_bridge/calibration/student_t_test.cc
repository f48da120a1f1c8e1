#include "astra_bridge/calibration/student_t.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

// As printed in tables.
TEST(StudentTest, IsTheTables) {
  EXPECT_NEAR(StudentQuantile95(1), 12.706, 0.013);
  EXPECT_NEAR(StudentQuantile95(2), 4.303, 0.004);
  EXPECT_NEAR(StudentQuantile95(3), 3.182, 0.003);
  EXPECT_NEAR(StudentQuantile95(10), 2.228, 0.002);
  EXPECT_NEAR(StudentQuantile95(30), 2.042, 0.002);
  EXPECT_NEAR(StudentQuantile95(120), 1.980, 0.002);
  EXPECT_NEAR(StudentQuantile95(1e6), 1.960, 0.001);
}

TEST(StudentTest, MoreFreedomIsNeverWorse) {
  double last = StudentQuantile95(1);
  for (double freedom = 1.5; freedom < 2000; freedom *= 1.5) {
    const double next = StudentQuantile95(freedom);
    EXPECT_LT(next, last) << freedom;
    last = next;
  }
}

}  // namespace
}  // namespace meridian
