#include "xla_profiler/hlo/hlo_module_index.h"

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<absl::uint128> Fingerprint(const HloModuleBuilder& builder) {
  const std::string bytes = builder.Serialize();
  ASSIGN_OR_RETURN(const std::unique_ptr<HloModule> module, HloModule::Decode(bytes, bytes.data()));
  return HloFingerprint(*module, HloCollectives(*module));
}

// The fingerprint of the rich module after a change to it.
absl::uint128 After(const std::function<void(xla::HloModuleProto&)>& change) {
  HloModuleBuilder builder = RichModule();
  change(builder.module());
  return Fingerprint(builder).value();
}

xla::HloInstructionProto* Instruction(xla::HloModuleProto& module, const std::string& name) {
  for (auto& computation : *module.mutable_computations()) {
    for (auto& instruction : *computation.mutable_instructions()) {
      if (instruction.name() == name) return &instruction;
    }
  }
  return nullptr;
}

absl::uint128 Unchanged() {
  return After([](xla::HloModuleProto&) {});
}

// Stored fingerprints must stay valid.
TEST(HloFingerprintTest, IsTheSameForever) {
  HloModuleBuilder builder("");
  EXPECT_EQ(Fingerprint(builder).value(), HashOfText(std::string(8, '\0')));  // Of the number 0.
  EXPECT_EQ(HashDigits(Unchanged()), "b02f80a20dea9ad1623f6d8137b826c5");
}

TEST(HloFingerprintTest, WhatDiffersBetweenRanksDoesNotCount) {
  const absl::uint128 unchanged = Unchanged();
  EXPECT_EQ(After([](auto& m) { m.set_id(77); }), unchanged);
  EXPECT_EQ(After([](auto& m) { Instruction(m, "psum.7")->clear_backend_config_payload(); }),
            unchanged);
  EXPECT_EQ(After([](auto& m) {
              m.mutable_device_assignment()->mutable_computation_devices(0)->set_replica_device_ids(
                  0, 99);
            }),
            unchanged);
  // Every instruction id one higher, with all that refers to them.
  EXPECT_EQ(After([](auto& m) {
              for (auto& computation : *m.mutable_computations()) {
                computation.set_root_id(computation.root_id() + 1);
                for (auto& instruction : *computation.mutable_instructions()) {
                  instruction.set_id(instruction.id() + 1);
                  for (auto& id : *instruction.mutable_operand_ids()) ++id;
                }
              }
            }),
            unchanged);
}

TEST(HloFingerprintTest, WhatMakesTheProgramCounts) {
  const absl::uint128 unchanged = Unchanged();
  EXPECT_NE(After([](auto& m) { m.set_name("jit_eval"); }), unchanged);
  EXPECT_NE(After([](auto& m) { Instruction(m, "y")->mutable_shape()->set_dimensions(0, 5); }),
            unchanged);
  EXPECT_NE(After([](auto& m) { Instruction(m, "gte.1")->mutable_shape()->set_dimensions(0, 5); }),
            unchanged);
  EXPECT_NE(After([](auto& m) { Instruction(m, "psum.7")->set_opcode("all-gather"); }), unchanged);
  EXPECT_NE(After([](auto& m) { Instruction(m, "a2a.1")->mutable_shape()->set_dimensions(0, 5); }),
            unchanged);
  EXPECT_NE(After([](auto& m) {
              auto* iota = Instruction(m, "psum.7")->mutable_iota_collective_device_list();
              iota->set_iota_transpose_perm(0, 0);
              iota->set_iota_transpose_perm(1, 1);
            }),
            unchanged);
  EXPECT_NE(After([](auto& m) {
              auto* permute = Instruction(m, "ppermute.3");
              permute->mutable_source_target_pairs()->SwapElements(0, 1);
            }),
            unchanged);
}

TEST(HloFingerprintTest, TheEncodingOfGroupsDoesNotCount) {
  EXPECT_EQ(After([](auto& m) {
              auto* sum = Instruction(m, "psum.7");
              sum->clear_iota_collective_device_list();
              for (int64_t first : {0, 1}) {
                auto* group = sum->add_replica_groups();
                group->add_replica_ids(first);
                group->add_replica_ids(first + 2);
              }
            }),
            Unchanged());
}

TEST(HloFingerprintTest, ParametersCountInTheOrderOfTheirNumbers) {
  HloModuleBuilder a("m"), b("m");
  a.Add("x", "parameter", ArrayShape(xla::F32, {1}))->set_parameter_number(0);
  a.Add("y", "parameter", ArrayShape(xla::F32, {2}))->set_parameter_number(1);
  b.Add("y", "parameter", ArrayShape(xla::F32, {2}))->set_parameter_number(1);
  b.Add("x", "parameter", ArrayShape(xla::F32, {1}))->set_parameter_number(0);
  for (HloModuleBuilder* builder : {&a, &b}) {
    builder->Add("result", "constant", ArrayShape(xla::F32, {3}));
  }
  EXPECT_EQ(Fingerprint(a).value(), Fingerprint(b).value());
}

TEST(HloFingerprintTest, DamagedCollectivesHaveNone) {
  HloModuleBuilder builder = RichModule();
  Instruction(builder.module(), "ppermute.3")->mutable_source_target_pairs(0)->set_target(9);
  EXPECT_THAT(Fingerprint(builder),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ppermute.3: id 9")));
}

}  // namespace
}  // namespace meridian
