#include "xla_profiler/hlo/hlo_module.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/wire/wire_writer.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/hlo/replica_groups.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Decoded {
  explicit Decoded(const HloModuleBuilder& builder) : Decoded(builder.Serialize()) {}
  explicit Decoded(const std::string& bytes) {
    absl::StatusOr<std::unique_ptr<HloModule>> decoded = HloModule::Decode(bytes, bytes.data());
    EXPECT_OK(decoded);
    if (decoded.ok()) module = *std::move(decoded);
  }
  const HloModule* operator->() const { return module.get(); }

  std::unique_ptr<HloModule> module;
};

std::vector<std::string> Names(HloInstructionList instructions) {
  std::vector<std::string> names;
  for (const HloInstruction* instruction : instructions) names.emplace_back(instruction->name());
  return names;
}

xla::ShapeProto F32() { return ArrayShape(xla::F32, {4, 8}); }

TEST(HloModuleTest, ReadsTheModule) {
  const Decoded module(RichModule());
  EXPECT_EQ(module->name(), "jit_step");
  EXPECT_EQ(module->id(), -5);
  EXPECT_EQ(module->instructions().size(), 10);
  ASSERT_EQ(module->computations().size(), 2);
  EXPECT_EQ(module->entry(), &module->computations()[0]);
  ASSERT_NE(module->device_assignment(), nullptr);
  EXPECT_EQ(module->device_assignment()->Device(0, 3), 6144);
  EXPECT_EQ(module->num_problems(), 0);
}

TEST(HloModuleTest, ReadsComputations) {
  const Decoded module(RichModule());
  const HloComputation& entry = module->computations()[0];
  EXPECT_EQ(entry.id(), 1);
  EXPECT_EQ(entry.name(), "main");
  EXPECT_EQ(entry.instructions().size(), 8);
  EXPECT_EQ(entry.root()->name(), "gte.1");
  EXPECT_THAT(Names(entry.schedule()), ElementsAre("x", "y", "psum.7", "a2a-start", "a2a-done",
                                                   "ppermute.3", "call.1", "gte.1"));
  const HloComputation& wrapped = module->computations()[1];
  EXPECT_EQ(wrapped.instructions().size(), 2);
  EXPECT_EQ(&wrapped.instructions()[1].computation(), &wrapped);
  EXPECT_EQ(&wrapped.module(), module.module.get());
  EXPECT_THAT(wrapped.schedule(), IsEmpty());
}

TEST(HloModuleTest, ReadsInstructions) {
  const Decoded module(RichModule());
  const HloInstruction* sum = module->FindInstruction("psum.7");
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->id(), 103);
  EXPECT_EQ(sum->opcode(), "all-reduce");
  EXPECT_EQ(sum->proto().channel_id(), 1);
  EXPECT_THAT(Names(sum->operands()), ElementsAre("x"));
  EXPECT_EQ(ShapeText(sum->shape()), "f32[4,8]");
  EXPECT_EQ(ToString(*ReplicaGroupsOf(sum->proto())), "{0,2},{1,3}");

  const HloInstruction* start = module->FindInstruction("a2a-start");
  EXPECT_THAT(Names(start->control_predecessors()), ElementsAre("psum.7"));
  ASSERT_EQ(start->called_computations().size(), 1);
  EXPECT_EQ(start->called_computations()[0]->name(), "wrapped_a2a");
}

TEST(HloModuleTest, LooksUpByNameAndId) {
  const Decoded module(RichModule());
  EXPECT_EQ(module->FindInstructionById(110)->name(), "a2a.1");
  EXPECT_EQ(module->FindInstructionById(111), nullptr);
  EXPECT_EQ(module->FindInstruction("a2a"), nullptr);
  EXPECT_EQ(module->FindComputationById(2)->name(), "wrapped_a2a");
  EXPECT_EQ(module->FindComputationById(3), nullptr);
}

TEST(HloModuleTest, OperandsMayComeLaterInTheFile) {
  HloModuleBuilder builder("m");
  builder.Add("first", "negate", F32())->add_operand_ids(102);
  builder.Add("second", "parameter", F32());
  const Decoded module(builder);
  EXPECT_THAT(Names(module->FindInstruction("first")->operands()), ElementsAre("second"));
  EXPECT_EQ(module->num_problems(), 0);
}

TEST(HloModuleTest, TheEntryIsFoundByNameWhenThereIsNoId) {
  HloModuleBuilder builder = RichModule();
  builder.module().clear_entry_computation_id();
  EXPECT_EQ(Decoded(builder)->entry()->name(), "main");
  builder.module().set_entry_computation_name("gone");
  const Decoded module(builder);
  EXPECT_EQ(module->entry(), nullptr);
  EXPECT_EQ(module->num_problems(), 1);
}

TEST(HloModuleTest, DuplicatesStayListedAndLookupsFindTheFirst) {
  HloModuleBuilder builder("m");
  builder.Add("a", "parameter", F32());
  builder.Add("a", "negate", F32());
  builder.Add("b", "abs", F32())->set_id(101);
  builder.module().mutable_computations(0)->set_root_id(101);
  builder.AddComputation("other")->set_id(1);
  builder.Add("c", "parameter", F32());
  const Decoded module(builder);
  EXPECT_EQ(module->instructions().size(), 4);
  EXPECT_EQ(module->FindInstruction("a")->opcode(), "parameter");
  EXPECT_EQ(module->FindInstructionById(101)->name(), "a");
  EXPECT_EQ(module->FindComputationById(1)->name(), "main");
  // The name of "a", the id of "b", the id of "other".
  EXPECT_EQ(module->num_problems(), 3);
}

TEST(HloModuleTest, DanglingReferencesAreCountedAndLeftOut) {
  HloModuleBuilder builder("m");
  auto* x = builder.Add("x", "parameter", F32());
  auto* sum = builder.Add("sum", "add", F32());
  for (int64_t id : {777, 101, 778}) sum->add_operand_ids(id);
  sum->add_control_predecessor_ids(-1);
  sum->add_called_computation_ids(9);
  builder.module().mutable_computations(0)->set_root_id(55);
  auto& sequences = *builder.module().mutable_schedule()->mutable_sequences();
  sequences[1].add_instruction_ids(x->id());
  sequences[1].add_instruction_ids(66);
  sequences[8].add_instruction_ids(x->id());
  const Decoded module(builder);
  const HloInstruction* decoded = module->FindInstruction("sum");
  EXPECT_THAT(Names(decoded->operands()), ElementsAre("x"));
  EXPECT_TRUE(decoded->has_dangling_operands());
  EXPECT_FALSE(module->FindInstruction("x")->has_dangling_operands());
  EXPECT_THAT(decoded->control_predecessors(), IsEmpty());
  EXPECT_THAT(decoded->called_computations(), IsEmpty());
  EXPECT_EQ(module->entry()->root(), nullptr);
  EXPECT_THAT(Names(module->entry()->schedule()), ElementsAre("x"));
  // Operands 777 and 778, control predecessor -1, called computation 9, root 55, and of the
  // schedule instruction 66 and computation 8.
  EXPECT_EQ(module->num_problems(), 7);
}

TEST(HloModuleTest, ARootOfAnotherComputationIsNone) {
  HloModuleBuilder builder = RichModule();
  builder.module().mutable_computations(1)->set_root_id(101);
  const Decoded module(builder);
  EXPECT_EQ(module->computations()[1].root(), nullptr);
  EXPECT_EQ(module->num_problems(), 1);
}

TEST(HloModuleTest, PiecesOfAModuleAddUp) {
  HloModuleBuilder builder = RichModule();
  xla::HloProto more;
  more.mutable_hlo_module()->set_name("renamed");
  more.mutable_hlo_module()->add_computations()->set_name("third");
  const Decoded module(builder.Serialize() + more.SerializeAsString());
  EXPECT_EQ(module->name(), "renamed");
  ASSERT_EQ(module->computations().size(), 3);
  EXPECT_EQ(module->computations()[2].name(), "third");
}

TEST(HloModuleTest, AnEmptyModuleIsOne) {
  const Decoded module("");
  EXPECT_THAT(module->instructions(), IsEmpty());
  EXPECT_EQ(module->entry(), nullptr);
  EXPECT_EQ(module->device_assignment(), nullptr);
}

TEST(HloModuleTest, FieldsOfAnotherWireTypeAreUnknown) {
  // An instruction whose name is a number, whose id is text and whose operands are fixed64.
  std::string instruction, computation, module_bytes, proto;
  StringOutput instruction_output(&instruction);
  WriteVarintField(1, 5, &instruction_output);
  WriteBytesField(35, "id", &instruction_output);
  instruction_output.Varint(MakeTag(36, WireType::kFixed64));
  instruction_output.Raw("12345678");
  StringOutput computation_output(&computation);
  WriteBytesField(2, instruction, &computation_output);
  WriteVarintField(2, 1, &computation_output);
  StringOutput module_output(&module_bytes);
  WriteBytesField(3, computation, &module_output);
  StringOutput proto_output(&proto);
  WriteBytesField(1, module_bytes, &proto_output);
  const Decoded module(proto);
  ASSERT_EQ(module->instructions().size(), 1);
  EXPECT_EQ(module->instructions()[0].name(), "");
  EXPECT_EQ(module->instructions()[0].id(), 0);
  EXPECT_THAT(module->instructions()[0].operands(), IsEmpty());
}

TEST(HloModuleTest, DamageNamesItsOffsetInTheFile) {
  // At 100 the module, 9 bytes of which only 1 is there.
  const std::string file = std::string(100, 'x') + "\x0A\x09\x0A";
  EXPECT_THAT(HloModule::Decode(absl::string_view(file).substr(100), file.data()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "offset 101: length runs past the end of the enclosing message"));
}

TEST(HloModuleTest, NamesMustBeUtf8) {
  std::string bytes = RichModule().Serialize();
  bytes[bytes.find("psum.7")] = '\xFF';
  EXPECT_THAT(HloModule::Decode(bytes, bytes.data()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "offset 0: the HLO module that begins here is damaged"));
}

TEST(HloModuleTest, OperandsInACircleAreFine) {
  HloModuleBuilder builder("m");
  builder.Add("a", "negate", F32())->add_operand_ids(102);
  builder.Add("b", "negate", F32())->add_operand_ids(101);
  builder.Add("self", "call", F32())->add_called_computation_ids(1);
  const Decoded module(builder);
  EXPECT_THAT(Names(module->FindInstruction("a")->operands()), ElementsAre("b"));
  EXPECT_EQ(module->num_problems(), 0);
}

// With a constant of 64 MiB among them.
TEST(HloModuleTest, AMillionInstructions) {
  HloModuleBuilder builder("big");
  const xla::HloInstructionProto* last = builder.Add("x", "parameter", F32());
  for (int i = 0; i < 999998; ++i) {
    last = builder.Add(absl::StrCat("add.", i), "add", F32(), {last, last});
  }
  auto* constant = builder.Add("constant", "constant", F32());
  constant->GetReflection()->MutableUnknownFields(constant)->AddLengthDelimited(
      8, std::string(64 << 20, 'c'));
  const std::string bytes = builder.Serialize();
  const auto begin = std::chrono::steady_clock::now();
  const Decoded module(bytes);
  // A guard, not a measurement: half a second is expected, machines differ.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(module->instructions().size(), 1000000);
  EXPECT_EQ(module->FindInstruction("add.999997")->operands()[1]->name(), "add.999996");
  EXPECT_THAT(HloCollectives(*module.module).all(), IsEmpty());
}

TEST(HloModuleTest, PartsAreLimited) {
  // HloProto { hlo_module { computations {} x (2^22 + 1) } }: two bytes each.
  std::string module;
  for (int i = 0; i <= 1 << 22; ++i) module.append("\x1A\x00", 2);
  std::string bytes;
  StringOutput output(&bytes);
  WriteBytesField(1, module, &output);
  EXPECT_THAT(HloModule::Decode(bytes, bytes.data()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("computations and instructions")));
}

}  // namespace
}  // namespace meridian
