#include "xla_profiler/base/errors.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(CheckTest, StopsTheProgramNamingTheCondition) {
  EXPECT_DEATH(MERIDIAN_CHECK(1 + 1 == 3), "check_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckTest, EvaluatesTheConditionOnce) {
  int evaluations = 0;
  MERIDIAN_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace meridian
