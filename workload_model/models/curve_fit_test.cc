#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "workload_model/models/curve_fit.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<MeasuredPoint> Points(const std::function<double(double, double)>& value) {
  std::vector<MeasuredPoint> points;
  for (double nodes : {4, 9, 16, 25, 36}) {
    for (double size = 16; size <= 22; ++size) {
      points.push_back({{nodes, size}, value(nodes, size)});
    }
  }
  return points;
}

double Share(double nodes, double size) { return std::exp2(size) / nodes; }

TEST(CurveFitTest, FindsTheTruth) {
  const auto truth = [](double n, double s) { return 20 + 3 * std::log2(n) + 1e-3 * Share(n, s); };
  const ChosenModel chosen = ChooseModel(Points(truth), false);
  EXPECT_THAT(std::vector<std::string>(chosen.model.terms().begin(), chosen.model.terms().end()),
              ElementsAre("1", "lg n", "u"));
  EXPECT_NEAR(EvaluateModel(chosen.model, {64, 24}) / truth(64, 24), 1, 1e-3);
  EXPECT_LT(chosen.left_out.value_or(1), 1e-3);
}

TEST(CurveFitTest, ConstantsStayConstant) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.1);
  const ChosenModel chosen =
      ChooseModel(Points([&](double, double) { return 50 * std::exp(noise(random)); }), false);
  EXPECT_EQ(chosen.model.type(), kConstant);
  EXPECT_NEAR(chosen.model.coefficients(0), 50, 2);
}

// One run of ten times the time does not move the others.
TEST(CurveFitTest, AWildPointMovesLittle) {
  const auto truth = [](double n, double s) { return 20 + 1e-3 * Share(n, s); };
  std::vector<MeasuredPoint> points = Points(truth);
  points[17].value *= 10;
  const ChosenModel chosen = ChooseModel(points, false);
  EXPECT_NEAR(EvaluateModel(chosen.model, {36, 22}) / truth(36, 22), 1, 0.03);
}

TEST(CurveFitTest, NoCoefficientIsNegative) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.3);
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::string> all = {"1", "lg n", "u^0.5", "u", "u^1.5"};
    const Model model =
        FitNormal(Points([&](double n, double s) { return 100 * std::exp(noise(random)) / n + s; }),
                  all, false);
    for (double coefficient : model.coefficients()) EXPECT_GE(coefficient, 0);
  }
}

// How often a ring goes round.
TEST(CurveFitTest, CountsFollowTheRing) {
  const Model model =
      FitCount(Points([](double n, double) { return 200 * (std::sqrt(n) - 1); }), false);
  EXPECT_NEAR(EvaluateModel(model, {64, 24}), 1400, 1);
  EXPECT_EQ(FitCount(Points([](double, double) { return 64; }), false).type(), kConstant);
}

TEST(CurveFitTest, TypesThatAreAskedForAreFitted) {
  const auto exponential = [](double n, double s) {
    return std::exp(-0.005 * n * s + 0.08 * n + 0.4 * s - 3);
  };
  ASSERT_OK_AND_ASSIGN(const Model e, FitType(Points(exponential), "EXPONENTIAL", 0, false));
  EXPECT_THAT(std::vector<double>(e.coefficients().begin(), e.coefficients().end()),
              ElementsAre(testing::DoubleNear(-0.005, 1e-9), testing::DoubleNear(0.08, 1e-8),
                          testing::DoubleNear(0.4, 1e-8), testing::DoubleNear(-3, 1e-7)));
  const auto polynomial = [](double n, double s) { return 5 + 2 * n + 0.5 * s * s * n * n; };
  ASSERT_OK_AND_ASSIGN(const Model p, FitType(Points(polynomial), "POLYNOMIAL", 4, false));
  EXPECT_EQ(p.terms_size(), 15);
  EXPECT_NEAR(EvaluateModel(p, {30, 20}) / polynomial(30, 20), 1, 1e-6);
  ASSERT_OK_AND_ASSIGN(const Model b, FitType(Points([](double n, double s) { return n * s + 7; }),
                                              "BILINEAR", 0, false));
  EXPECT_NEAR(EvaluateModel(b, {64, 24}), 64 * 24 + 7, 1e-4);
}

TEST(CurveFitTest, WhatCannotBeToldIsRefused) {
  std::vector<MeasuredPoint> points = Points([](double, double) { return 1; });
  EXPECT_THAT(FitType(absl::MakeConstSpan(points).subspan(0, 3), "EXPONENTIAL", 0, false)
                  .status()
                  .message(),
              HasSubstr("too few cells"));
  // Seven sizes of one number of nodes.
  EXPECT_THAT(
      FitType(absl::MakeConstSpan(points).subspan(0, 7), "BILINEAR", 0, false).status().message(),
      HasSubstr("more numbers of nodes"));
  EXPECT_FALSE(FitType(points, "LINEAR", 0, false).ok());
}

}  // namespace
}  // namespace meridian
