#include "chakra_export/generate/transformer_cost.h"

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// 3 sequences of 5 tokens: t = 15; h = 4, v = 20.
TransformerShape Tiny() {
  TransformerShape shape;
  shape.hidden = 4;
  shape.sequence = 5;
  shape.vocabulary = 20;
  shape.microbatch = 3;
  shape.element_bytes = 2;
  return shape;
}

// Product by product, an (a x b) times (b x c) being 2 a b c operations:
//   attention   Q, K, V    3 x 2*15*4*4                          = 1440
//               scores     3 sequences x 2*5*4*5                 =  600
//               weighting  3 sequences x 2*5*5*4                 =  600
//               output     2*15*4*4                              =  480   -> 3120
//   MLP         up 2*15*4*16 + down 2*15*16*4 = 1920 + 1920      = 3840
//   head        2*15*4*20                                        = 2400
TEST(TransformerCostTest, CountsTheOperationsOfEachProduct) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.attention.operations, 3120);
  EXPECT_EQ(cost.mlp.operations, 3840);
  EXPECT_EQ(cost.embedding.operations, 60);
  EXPECT_EQ(cost.head.operations, 2400);
}

// Elements, in and out of each product:
//   attention   Q, K, V    60 + 3*16 + 180; scores to weighting 180 + 60; output 60 + 16 + 60 = 664
//   MLP         up 60 + 64 + 240; down 240 + 64 + 60                                          = 728
//   head        60 + 80 + 300                                                                 = 440
TEST(TransformerCostTest, CountsWhatEachProductReadsAndWrites) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.attention.bytes, 2 * 664);
  EXPECT_EQ(cost.mlp.bytes, 2 * 728);
  EXPECT_EQ(cost.embedding.bytes, 2 * 120);
  EXPECT_EQ(cost.head.bytes, 2 * 440);
}

// 4 matrices of 4 x 4, and 4 x 16 and 16 x 4; 20 x 4.
TEST(TransformerCostTest, CountsParametersAndMessages) {
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(Tiny()));
  EXPECT_EQ(cost.layer_parameters, 64 + 128);
  EXPECT_EQ(cost.vocabulary_parameters, 80);
  EXPECT_EQ(cost.activation_bytes, 2 * 60);
  EXPECT_EQ(cost.loss_bytes, 3 * 4 * 15);
}

// Activations at the ends of a block are whole on every rank: 2 t h and t h of the head.
TEST(TransformerCostTest, TensorParallelRanksShareWeightsAndWhatIsInside) {
  TransformerShape shape = Tiny();
  shape.tensor_parallel = 2;
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(shape));
  EXPECT_EQ(cost.attention.operations, 1560);
  EXPECT_EQ(cost.attention.bytes, 2 * (120 + (664 - 120) / 2));
  EXPECT_EQ(cost.mlp.operations, 1920);
  EXPECT_EQ(cost.mlp.bytes, 2 * (120 + (728 - 120) / 2));
  EXPECT_EQ(cost.head.operations, 1200);
  EXPECT_EQ(cost.head.bytes, 2 * (60 + (440 - 60) / 2));
  EXPECT_EQ(cost.embedding.operations, 60);
  EXPECT_EQ(cost.layer_parameters, 96);
  EXPECT_EQ(cost.vocabulary_parameters, 40);
  EXPECT_EQ(cost.activation_bytes, 120);
  EXPECT_EQ(cost.loss_bytes, 180);
}

// Of GPT-3's 175 billion: 96 layers of hidden size 12288, and an embedding of 50257 (51200 here).
TEST(TransformerCostTest, AgreesWithAKnownModel) {
  TransformerShape shape;
  shape.hidden = 12288;
  shape.sequence = 2048;
  shape.vocabulary = 51200;
  shape.microbatch = 1;
  shape.element_bytes = 2;
  ASSERT_OK_AND_ASSIGN(const TransformerCost cost, CostOfTransformer(shape));
  EXPECT_EQ(96 * cost.layer_parameters + cost.vocabulary_parameters, 174'575'321'088);
}

TEST(TransformerCostTest, ABackwardPassIsTwoForwardPasses) {
  EXPECT_EQ(BackwardCost({3120, 1328}).operations, 6240);
  EXPECT_EQ(BackwardCost({3120, 1328}).bytes, 2656);
}

TEST(TransformerCostTest, AnOptimizerTouchesStateOfEachParameter) {
  ASSERT_OK_AND_ASSIGN(const WorkCost cost, OptimizerCost(10, 2));
  EXPECT_EQ(cost.operations, 120);
  EXPECT_EQ(cost.bytes, 10 * (2 + 2 + 3 * 8));
}

TEST(TransformerCostTest, RefusesWhatDoesNotFit) {
  TransformerShape shape = Tiny();
  shape.hidden = 1 << 24;
  shape.microbatch = 1 << 10;
  EXPECT_THAT(CostOfTransformer(shape),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("--hidden")));
  EXPECT_THAT(OptimizerCost(absl::int128(1) << 70, 2), StatusIs(absl::StatusCode::kOutOfRange));
  // 16 t h^2 of the MLP is the most: with h = 2^22 and t = 5 * 2^10 it is 1.25 * 2^60, and the
  // backward pass twice that.
  shape.hidden = 1 << 22;
  shape.microbatch = 3 << 10;
  EXPECT_THAT(CostOfTransformer(shape), IsOk());
  shape.microbatch = 4 << 10;
  EXPECT_THAT(CostOfTransformer(shape), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace meridian
