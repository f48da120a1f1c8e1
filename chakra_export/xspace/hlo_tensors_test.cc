#include "chakra_export/xspace/hlo_tensors.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

class HloTensorsTest : public ::testing::Test {
 protected:
  HloTensorsTest() {
    auto* x = builder_.Add("x", "parameter", array_);
    auto* pair = builder_.Add("pair", "fusion", TupleShape({array_, matrix_}), {x});
    auto* second = builder_.Add("second", "get-tuple-element", matrix_, {pair});
    second->set_tuple_index(1);
    auto* view = builder_.Add("view", "bitcast", matrix_, {second});
    builder_.Add("last", "fusion", matrix_, {view, x});
  }

  ChakraProtoMsg::Node Describe(absl::string_view name) {
    bytes_ = builder_.Serialize();
    absl::StatusOr<std::unique_ptr<HloModule>> module = HloModule::Decode(bytes_, bytes_.data());
    EXPECT_OK(module.status());
    HloTensors tensors(**module, /*open_fusions=*/false);
    const HloInstruction& instruction = *(*module)->FindInstruction(name);
    tensors.Add(instruction);
    ChakraProtoMsg::Node node;
    tensors.Describe(instruction, /*operand=*/-1, /*first_id=*/10, /*rank=*/3, &node);
    return node;
  }

  // Lets the value lie in that allocation.
  void Place(int64_t buffer, int64_t instruction, int64_t element, int64_t offset,
             xla::BufferAllocationProto* allocation) {
    xla::LogicalBufferProto* value = builder_.buffers().add_logical_buffers();
    value->set_id(buffer);
    value->mutable_defined_at()->set_instruction_id(instruction);
    if (element >= 0) value->mutable_defined_at()->add_shape_index(element);
    auto* assigned = allocation->add_assigned();
    assigned->set_logical_buffer_id(buffer);
    assigned->set_offset(offset);
  }

  const xla::ShapeProto array_ = ArrayShape(xla::F32, {4});
  const xla::ShapeProto matrix_ = ArrayShape(xla::BF16, {2, 3});
  HloModuleBuilder builder_{"m"};
  std::string bytes_;
};

// Arrays are numbered as they stand: x is 10, those of the pair 11 and 12, last 15.
TEST_F(HloTensorsTest, TwoNodesThatUseOneTensorSaySo) {
  const ChakraProtoMsg::Node pair = Describe("pair");
  EXPECT_EQ(pair.inputs().values(), "[[10, 10, 0, 4, 4, 'device:3']]");
  EXPECT_EQ(pair.outputs().values(),
            "[[11, 11, 0, 4, 4, 'device:3'], [12, 12, 0, 6, 2, 'device:3']]");
  EXPECT_EQ(pair.outputs().shapes(), "[[4], [2, 3]]");
  EXPECT_EQ(pair.outputs().types(), "['Tensor(f32)', 'Tensor(bf16)']");
  const ChakraProtoMsg::Node last = Describe("last");
  EXPECT_EQ(last.inputs().values(),
            "[[12, 12, 0, 6, 2, 'device:3'], [10, 10, 0, 4, 4, 'device:3']]");
  EXPECT_EQ(last.outputs().values(), "[[15, 15, 0, 6, 2, 'device:3']]");
}

// The step of a loop reads what the loop was given, or what the step before it made.
TEST_F(HloTensorsTest, TheOnlyIterationReadsWhatTheLoopWasGiven) {
  const xla::ShapeProto state = TupleShape({array_});
  auto* given = builder_.Add("given", "fusion", array_);
  auto* initial = builder_.Add("initial", "tuple", state, {given});
  auto* loop = builder_.Add("loop", "while", state, {initial});
  auto* body = builder_.AddComputation("body");
  loop->add_called_computation_ids(body->id());
  auto* p = builder_.Add("p", "parameter", state);
  auto* mine = builder_.Add("mine", "get-tuple-element", array_, {p});
  auto* step = builder_.Add("step", "fusion", array_, {mine});
  builder_.Add("next", "tuple", state, {step});
  bytes_ = builder_.Serialize();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<HloModule> module,
                       HloModule::Decode(bytes_, bytes_.data()));
  for (const bool once : {false, true}) {
    HloTensors tensors(*module, /*open_fusions=*/false, once);
    for (const char* const name : {"given", "step"}) tensors.Add(*module->FindInstruction(name));
    ChakraProtoMsg::Node node;
    tensors.Describe(*module->FindInstruction("step"), -1, 0, 0, &node);
    EXPECT_EQ(node.inputs().shapes(), once ? "[[4]]" : "[[4], [4]]");
  }
}

// The second of the pair and what is made of it lie in allocation 1, one behind the other.
TEST_F(HloTensorsTest, StoragesAreWhereXlaPutThem) {
  builder_.buffers().add_buffer_allocations();
  xla::BufferAllocationProto* shared = builder_.buffers().add_buffer_allocations();
  Place(7, 102, 1, 128, shared);
  Place(8, 105, -1, 256, shared);
  const ChakraProtoMsg::Node last = Describe("last");
  EXPECT_EQ(last.inputs().values(),
            "[[12, 11, 128, 6, 2, 'device:3'], [10, 12, 0, 4, 4, 'device:3']]");
  EXPECT_EQ(last.outputs().values(), "[[15, 11, 256, 6, 2, 'device:3']]");
}

}  // namespace
}  // namespace meridian
