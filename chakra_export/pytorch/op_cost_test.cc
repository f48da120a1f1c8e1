#include "chakra_export/pytorch/op_tensors.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::Optional;

// Values and shapes are JSON lists.
struct Call {
  std::string inputs = "[]";
  std::string input_shapes = "[]";
  std::string outputs = "[]";
  std::string output_shapes = "[]";
};

OpCost CostOf(absl::string_view name, const Call& call) {
  HostOpDetails details;
  details.inputs.values = JsonValue(call.inputs);
  details.inputs.shapes = JsonValue(call.input_shapes);
  details.outputs.values = JsonValue(call.outputs);
  details.outputs.shapes = JsonValue(call.output_shapes);
  return CostOfOperator(name, details);
}

std::optional<int64_t> OperationsOf(absl::string_view name, const std::string& input_shapes,
                                    const std::string& output_shapes = "[]") {
  Call call;
  call.input_shapes = input_shapes;
  call.output_shapes = output_shapes;
  return CostOf(name, call).operations;
}

TEST(OpCostTest, BytesAreThoseOfTheTensorsOnTheDevice) {
  Call call;
  call.inputs = absl::StrCat("[", TensorJson(1, 100), ", [", TensorJson(2, 10), ", ",
                             TensorJson(3, 1), "], ", TensorJson(4, 7, "cpu"), ", 1.5]");
  call.outputs = absl::StrCat("[", TensorJson(1, 100), "]");
  // Floats: 100 + 10 + 1 read, 100 written.
  EXPECT_EQ(CostOf("aten::add_", call).bytes, 844);
  EXPECT_EQ(CostOf("aten::add_", {}).bytes, 0);
}

TEST(OpCostTest, AMatrixProductCountsTwoForEachProduct) {
  EXPECT_THAT(OperationsOf("aten::mm", "[[2048, 512], [512, 1536]]"),
              Optional(int64_t{2} * 2048 * 512 * 1536));
  EXPECT_THAT(OperationsOf("aten::addmm", "[[512], [2048, 512], [512, 512], [], []]"),
              Optional(int64_t{2} * 2048 * 512 * 512));
  EXPECT_THAT(OperationsOf("aten::bmm", "[[16, 128, 64], [16, 64, 32]]"),
              Optional(int64_t{2} * 16 * 128 * 64 * 32));
  // These do not fit.
  EXPECT_EQ(OperationsOf("aten::mm", "[[2048, 512], [511, 1536]]"), std::nullopt);
  EXPECT_EQ(OperationsOf("aten::mm", "[[2048], [2048]]"), std::nullopt);
  EXPECT_EQ(OperationsOf("aten::mm", "[]"), std::nullopt);
}

// 8 images, 64 channels of 56 x 56 to 128 channels of 28 x 28 by 3 x 3.
TEST(OpCostTest, AConvolutionSumsOverTheWeightsOfAChannel) {
  constexpr int64_t kForward = int64_t{2} * 8 * 128 * 28 * 28 * 64 * 3 * 3;
  EXPECT_THAT(OperationsOf("aten::cudnn_convolution", "[[8, 64, 56, 56], [128, 64, 3, 3]]",
                           "[[8, 128, 28, 28]]"),
              Optional(kForward));
  constexpr char kBackward[] = "[[8, 128, 28, 28], [8, 64, 56, 56], [128, 64, 3, 3]]";
  EXPECT_THAT(OperationsOf("aten::convolution_backward", kBackward,
                           "[[8, 64, 56, 56], [128, 64, 3, 3], []]"),
              Optional(2 * kForward));
  // The first layer's input needs no gradient.
  EXPECT_THAT(OperationsOf("aten::convolution_backward", kBackward, "[[], [128, 64, 3, 3], []]"),
              Optional(kForward));
}

TEST(OpCostTest, AnAttentionIsTwoMatrixProductsForEachHead) {
  EXPECT_THAT(OperationsOf("aten::_efficient_attention_forward",
                           "[[16, 128, 8, 64], [16, 256, 8, 64], [16, 256, 8, 32], []]"),
              Optional(int64_t{2} * 16 * 8 * 128 * 256 * (64 + 32)));
}

TEST(OpCostTest, OtherOperatorsCountOneForEachElement) {
  Call sum;
  sum.inputs = absl::StrCat("[", TensorJson(1, 100), "]");
  sum.outputs = absl::StrCat("[", TensorJson(2, 1), "]");
  EXPECT_THAT(CostOf("aten::sum", sum).operations, Optional(100));
  Call expand;
  expand.inputs = absl::StrCat("[", TensorJson(1, 10), "]");
  expand.outputs = absl::StrCat("[", TensorJson(2, 1000), "]");
  EXPECT_THAT(CostOf("aten::mul", expand).operations, Optional(1000));
  // All tensors of a list together; parameters and gradients are of one size.
  Call optimizer;
  const std::string list = absl::StrCat("[", TensorJson(1, 30), ", ", TensorJson(2, 12), "]");
  optimizer.inputs = absl::StrCat("[", list, ", ", list, ", 0.1]");
  EXPECT_THAT(CostOf("aten::_foreach_add_", optimizer).operations, Optional(42));
}

TEST(OpCostTest, WhatShapesDoNotTellIsUnknown) {
  Call call;
  call.inputs = absl::StrCat("[", TensorJson(1, 100), "]");
  for (const char* name : {"aten::_efficient_attention_backward", "aten::_cudnn_rnn",
                           "aten::linalg_qr", "aten::_fft_c2c", "mylib::kernel"}) {
    EXPECT_EQ(CostOf(name, call).operations, std::nullopt) << name;
    EXPECT_EQ(CostOf(name, call).bytes, 400) << name;
  }
}

TEST(OpCostTest, SizesThatCannotBeTrueStopAtTheLargestNumber) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(OperationsOf("aten::mm", "[[3000000000, 3000000000], [3000000000, 3000000000]]"),
              Optional(kMax));
  EXPECT_EQ(OperationsOf("aten::mm", "[[-1, 5], [5, 2]]"), std::nullopt);
  Call call;
  const std::string huge = "[1, 1, 0, 4611686018427387904, 1, \"cuda:0\"]";
  call.inputs = absl::StrCat("[", huge, ", ", huge, ", ", huge, "]");
  EXPECT_EQ(CostOf("aten::cat", call).bytes, kMax);
}

}  // namespace
}  // namespace meridian
