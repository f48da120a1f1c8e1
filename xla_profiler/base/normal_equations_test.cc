#include "xla_profiler/base/normal_equations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(NormalEquationsTest, SolvesALineExactly) {
  NormalEquations equations(2, /*prior_deviation=*/1e6);
  for (double x : {1.0, 2.0, 3.0}) equations.Add({1, x}, 5 + 2 * x, 1);
  EXPECT_THAT(equations.Solve(), ElementsAre(DoubleNear(5, 1e-6), DoubleNear(2, 1e-6)));
}

// Two measurements of one number, deviations 1 and 1/2: mean (1 * 10 + 4 * 20) / 5, variance 1/5.
TEST(NormalEquationsTest, WeightsAreInverseVariances) {
  NormalEquations equations(1, 1e6);
  equations.Add({1}, 10, 1);
  equations.Add({1}, 20, 4);
  EXPECT_THAT(equations.Solve(), ElementsAre(DoubleNear(18, 1e-6)));
  EXPECT_THAT(equations.Deviations(), ElementsAre(DoubleNear(0.4472135955, 1e-6)));
}

// Only x + y is measured: x - y keeps the prior's deviation, so each has 10 / sqrt(2).
TEST(NormalEquationsTest, WhatIsNotMeasuredKeepsThePriorsDeviation) {
  NormalEquations equations(2, 10);
  for (int i = 0; i < 100; ++i) equations.Add({1, 1}, 0, 1e4);
  EXPECT_THAT(equations.Deviations(),
              ElementsAre(DoubleNear(7.071, 0.01), DoubleNear(7.071, 0.01)));
}

// The inverse of {{4, 2}, {2, 3}} is {{3, -2}, {-2, 4}} / 8.
TEST(CholeskyFactorTest, SolvesAndInverts) {
  const CholeskyFactor factor({4, 2, 2, 3}, 2);
  EXPECT_THAT(factor.Solve({8, 8}), ElementsAre(DoubleNear(1, 1e-12), DoubleNear(2, 1e-12)));
  EXPECT_NEAR(factor.InverseDiagonal(0), 0.375, 1e-12);
  EXPECT_NEAR(factor.InverseDiagonal(1), 0.5, 1e-12);
}

TEST(NormalEquationsTest, DampingShortensTheStep) {
  NormalEquations equations(1, 1e6);
  equations.Add({1}, 10, 1);
  equations.Damp(1);
  EXPECT_THAT(equations.Solve(), ElementsAre(DoubleNear(5, 1e-6)));
}

}  // namespace
}  // namespace meridian
