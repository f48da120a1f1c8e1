#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {

xla::ShapeProto ArrayShape(xla::PrimitiveType type, const std::vector<int64_t>& dimensions) {
  xla::ShapeProto shape;
  shape.set_element_type(type);
  for (int64_t dimension : dimensions) shape.add_dimensions(dimension);
  return shape;
}

xla::ShapeProto TupleShape(const std::vector<xla::ShapeProto>& elements) {
  xla::ShapeProto shape;
  shape.set_element_type(xla::TUPLE);
  for (const xla::ShapeProto& element : elements) *shape.add_tuple_shapes() = element;
  return shape;
}

HloModuleBuilder::HloModuleBuilder(absl::string_view name) {
  module().set_name(std::string(name));
  module().set_entry_computation_name("main");
  module().set_entry_computation_id(1);
  AddComputation("main");
}

xla::HloComputationProto* HloModuleBuilder::AddComputation(absl::string_view name) {
  computation_ = module().add_computations();
  computation_->set_name(std::string(name));
  computation_->set_id(module().computations_size());
  return computation_;
}

xla::HloInstructionProto* HloModuleBuilder::Add(
    absl::string_view name, absl::string_view opcode, const xla::ShapeProto& shape,
    const std::vector<const xla::HloInstructionProto*>& operands) {
  xla::HloInstructionProto* instruction = computation_->add_instructions();
  instruction->set_id(next_instruction_id_++);
  instruction->set_name(std::string(name));
  instruction->set_opcode(std::string(opcode));
  *instruction->mutable_shape() = shape;
  for (const auto* operand : operands) instruction->add_operand_ids(operand->id());
  computation_->set_root_id(instruction->id());
  return instruction;
}

void HloModuleBuilder::SetDeviceAssignment(const std::vector<std::vector<int64_t>>& partitions) {
  xla::DeviceAssignmentProto& assignment = *module().mutable_device_assignment();
  assignment.set_replica_count(static_cast<int32_t>(partitions[0].size()));
  assignment.set_computation_count(static_cast<int32_t>(partitions.size()));
  for (const std::vector<int64_t>& partition : partitions) {
    auto* row = assignment.add_computation_devices();
    for (int64_t device : partition) row->add_replica_device_ids(device);
  }
}

HloModuleBuilder RichModule() {
  HloModuleBuilder builder("jit_step");
  builder.module().set_id(-5);
  builder.module().add_payloads("first");
  builder.module().add_payloads("second");
  builder.SetDeviceAssignment({{0}, {2048}, {4096}, {6144}});
  const xla::ShapeProto f32 = ArrayShape(xla::F32, {4, 8});
  auto* x = builder.Add("x", "parameter", f32);
  auto* y = builder.Add("y", "parameter", f32);
  y->set_parameter_number(1);
  y->mutable_metadata()->set_op_name("jit(step)/y");
  y->mutable_metadata()->set_source_file("step.py");

  auto* sum = builder.Add("psum.7", "all-reduce", f32, {x});
  sum->set_channel_id(1);
  sum->set_use_global_device_ids(true);
  auto* iota = sum->mutable_iota_collective_device_list();
  iota->set_num_replica_groups(2);
  iota->set_num_devices_per_group(2);
  iota->add_iota_reshape_dims(2);
  iota->add_iota_reshape_dims(2);
  iota->add_iota_transpose_perm(1);
  iota->add_iota_transpose_perm(0);
  sum->mutable_backend_config_payload()->set_id(1);

  auto* start = builder.Add("a2a-start", "async-start", TupleShape({TupleShape({f32}), f32}), {y});
  start->add_called_computation_ids(2);
  start->add_control_predecessor_ids(sum->id());
  auto* done = builder.Add("a2a-done", "async-done", f32, {start});

  auto* permute = builder.Add("ppermute.3", "collective-permute", f32, {sum});
  permute->set_channel_id(3);
  for (int i = 0; i < 4; ++i) {
    auto* pair = permute->add_source_target_pairs();
    pair->set_source(i);
    pair->set_target((i + 1) % 4);
  }
  (*permute->mutable_frontend_attributes()->mutable_map())["is_spmd_generated"] = "true";
  auto* call = builder.Add("call.1", "custom-call", TupleShape({f32, f32}), {permute, done});
  call->set_custom_call_target("__cublas$gemm");
  call->set_backend_config("\xFFraw");
  call->add_dimensions(1);
  call->add_dimensions(0);
  auto* element = builder.Add("gte.1", "get-tuple-element", f32, {call});
  element->set_tuple_index(1);

  builder.AddComputation("wrapped_a2a")->set_is_fusion_computation(true);
  auto* parameter = builder.Add("param.0", "parameter", f32);
  auto* inner = builder.Add("a2a.1", "all-to-all", f32, {parameter});
  inner->set_channel_id(2);
  auto* mesh = inner->mutable_mesh_axes_replica_group_list()->mutable_mesh();
  for (const char* name : {"dp", "tp"}) {
    auto* axis = mesh->add_axes();
    axis->set_name(name);
    axis->set_size(2);
  }
  inner->mutable_mesh_axes_replica_group_list()->add_axes()->set_mesh_axis_index(1);

  auto& sequence = (*builder.module().mutable_schedule()->mutable_sequences())[1];
  for (int64_t id : {101, 102, 103, 104, 105, 106, 107, 108}) sequence.add_instruction_ids(id);
  return builder;
}

}  // namespace meridian
