#include "chakra_export/xspace/hlo_cost.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

HloCost CostIn(const HloModuleBuilder& builder, absl::string_view name) {
  const std::string bytes = builder.Serialize();
  const auto module = HloModule::Decode(bytes, bytes.data());
  EXPECT_THAT(module, IsOk());
  return CostOf(*(*module)->FindInstruction(name));
}

TEST(HloCostTest, ADotCountsTwoForEachProduct) {
  HloModuleBuilder builder("m");
  auto* lhs = builder.Add("lhs", "parameter", ArrayShape(xla::F32, {4, 16}));
  auto* rhs = builder.Add("rhs", "parameter", ArrayShape(xla::F32, {16, 8}));
  auto* dot = builder.Add("dot", "dot", ArrayShape(xla::F32, {4, 8}), {lhs, rhs});
  dot->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  const HloCost cost = CostIn(builder, "dot");
  EXPECT_EQ(cost.operations, 2 * 4 * 8 * 16);
  EXPECT_EQ(cost.bytes, 4 * (4 * 16 + 16 * 8 + 4 * 8));
}

TEST(HloCostTest, AFusionIsWhatItFuses) {
  HloModuleBuilder builder("m");
  auto* x = builder.Add("x", "parameter", ArrayShape(xla::BF16, {10}));
  auto* fusion = builder.Add("fusion", "fusion", ArrayShape(xla::BF16, {}), {x});
  auto* computation = builder.AddComputation("fused");
  fusion->add_called_computation_ids(computation->id());
  auto* p = builder.Add("p", "parameter", ArrayShape(xla::BF16, {10}));
  auto* squared = builder.Add("squared", "multiply", ArrayShape(xla::BF16, {10}), {p, p});
  builder.Add("sum", "reduce", ArrayShape(xla::BF16, {}), {squared});
  const HloCost cost = CostIn(builder, "fusion");
  EXPECT_EQ(cost.operations, 10 + 10);
  EXPECT_EQ(cost.bytes, 22);
}

TEST(HloCostTest, WhatShapesDoNotTellIsNotKnown) {
  HloModuleBuilder builder("m");
  auto* x = builder.Add("x", "parameter", ArrayShape(xla::F32, {10}));
  builder.Add("call", "custom-call", ArrayShape(xla::F32, {10}), {x});
  const HloCost cost = CostIn(builder, "call");
  EXPECT_EQ(cost.operations, std::nullopt);
  EXPECT_EQ(cost.bytes, 80);
}

TEST(HloCostTest, AContractionThatTheOperandDoesNotHaveIsNotKnown) {
  HloModuleBuilder builder("m");
  auto* x = builder.Add("x", "parameter", ArrayShape(xla::F32, {10}));
  auto* dot = builder.Add("dot", "dot", ArrayShape(xla::F32, {}), {x, x});
  dot->mutable_dot_dimension_numbers()->add_lhs_contracting_dimensions(1);
  EXPECT_EQ(CostIn(builder, "dot").operations, std::nullopt);
}

}  // namespace
}  // namespace meridian
