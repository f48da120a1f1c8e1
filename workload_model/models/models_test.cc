#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

Model MakeModel(absl::string_view type, const std::vector<double>& coefficients,
                const std::vector<std::string>& terms = {}) {
  Model model;
  model.set_type(std::string(type));
  for (double value : coefficients) model.add_coefficients(value);
  for (const std::string& term : terms) model.add_terms(term);
  return model;
}

TEST(ModelsTest, FormulasAreAsStated) {
  const WorkloadCell cell = {16, 5};
  EXPECT_EQ(EvaluateModel(MakeModel(kConstant, {7}), cell), 7);
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kExponential, {0.01, 0.02, 0.1, 1}), cell),
                   std::exp(0.8 + 0.32 + 0.5 + 1));
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kBilinear, {1, 2, 3, 4}), cell), 80 + 32 + 15 + 4);
  // 3 + 2 size^2 nodes.
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kPolynomial, {3, 2}, {"0,0", "2,1"}), cell), 803);
  EXPECT_DOUBLE_EQ(EvaluateModel(MakeModel(kTrace, {1, 2, 6}), cell), 3);
  // u = 32 / 16 = 2.
  EXPECT_DOUBLE_EQ(
      EvaluateModel(MakeModel(kNormal, {1, 10, 100, 1000}, {"1", "lg n", "u", "u^1.5"}), cell),
      1 + 40 + 200 + 1000 * 2 * std::sqrt(2.0));
  EXPECT_EQ(EvaluateModel(MakeModel(kBilinear, {-1, 0, 0, 0}), cell), 0);
}

// Beyond what was fitted, the tangent: at u = 4 it is 8, with a slope of 3.
TEST(ModelsTest, NothingGrowsFasterThanTheShareBeyondTheFitted) {
  Model model = MakeModel(kNormal, {1}, {"u^1.5"});
  model.set_most_u(4);
  EXPECT_DOUBLE_EQ(EvaluateModel(model, {1, 2}), 8);
  EXPECT_DOUBLE_EQ(EvaluateModel(model, {1, 3}), 8 + 3 * 4);
}

TEST(ModelsTest, ModelsThatCannotBeMeantAreRefused) {
  EXPECT_OK(CheckModel(MakeModel(kTrace, {1})));
  for (const Model& model :
       {MakeModel("LINEAR", {1}), MakeModel(kConstant, {}), MakeModel(kConstant, {std::nan("")}),
        MakeModel(kExponential, {1, 2, 3}), MakeModel(kTrace, {}),
        MakeModel(kPolynomial, {1}, {"1;2"}), MakeModel(kPolynomial, {1}, {"9,0"}),
        MakeModel(kPolynomial, {1, 2}, {"0,0"}), MakeModel(kNormal, {1}, {"n^7"})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckModel(model))) << model.type();
  }
}

TEST(ModelsTest, CellsArePlainText) {
  EXPECT_EQ(NodesText(1), "1 node");
  EXPECT_EQ(NodesText(1e6), "1,000,000 nodes");
  EXPECT_EQ(PlainNumber(1e15), "1,000,000,000,000,000");
  EXPECT_EQ(PlainNumber(0.5), "0.5");
  EXPECT_EQ(PlainNumber(0), "0");
}

TEST(EmberValueTest, RoundsHalfToEven) {
  const WorkloadCell cell = {2, 1};
  ASSERT_OK_AND_ASSIGN(const double rounded,
                       EmberValue(MakeModel(kBilinear, {0, 0, 0, 0.0025}), 1000, cell));
  EXPECT_EQ(rounded, 2);
  // Constants are not rounded, polynomials not negative.
  ASSERT_OK_AND_ASSIGN(const double constant,
                       EmberValue(MakeModel(kConstant, {0.0025}), 1000, cell));
  EXPECT_EQ(constant, 2.5);
  ASSERT_OK_AND_ASSIGN(const double clamped,
                       EmberValue(MakeModel(kPolynomial, {-4}, {"0,0"}), 1000, cell));
  EXPECT_EQ(clamped, 0);
  EXPECT_TRUE(
      absl::IsOutOfRange(EmberValue(MakeModel(kBilinear, {0, 0, 0, -1}), 1000, cell).status()));
  // Of a trace the first value.
  ASSERT_OK_AND_ASSIGN(const double first, EmberValue(MakeModel(kTrace, {1, 2}), 1, cell));
  EXPECT_EQ(first, 1);
}

}  // namespace
}  // namespace meridian
