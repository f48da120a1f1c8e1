// SPDX-License-Identifier: Apache-2.0
// Small HLO modules for tests:
//
//   HloModuleBuilder builder("jit_step");
//   auto* x = builder.Add("x", "parameter", ArrayShape(xla::F32, {4}));
//   builder.Add("sum", "all-reduce", ArrayShape(xla::F32, {4}), {x});
//   HloModule::Decode(builder.Serialize(), ...);
#ifndef XLA_PROFILER_TESTING_HLO_MODULE_BUILDER_H_
#define XLA_PROFILER_TESTING_HLO_MODULE_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "third_party/hlo/hlo.pb.h"

namespace meridian {

xla::ShapeProto ArrayShape(xla::PrimitiveType type, const std::vector<int64_t>& dimensions);
xla::ShapeProto TupleShape(const std::vector<xla::ShapeProto>& elements);

class HloModuleBuilder {
 public:
  // Begins with an empty entry computation, "main", of id 1.
  explicit HloModuleBuilder(absl::string_view name);

  // What follows goes into a new computation.
  xla::HloComputationProto* AddComputation(absl::string_view name);

  // Ids are given out from 101. The last instruction of a computation is its root.
  xla::HloInstructionProto* Add(absl::string_view name, absl::string_view opcode,
                                const xla::ShapeProto& shape,
                                const std::vector<const xla::HloInstructionProto*>& operands = {});

  // One row of replicas for each partition.
  void SetDeviceAssignment(const std::vector<std::vector<int64_t>>& partitions);

  xla::HloModuleProto& module() { return *proto_.mutable_hlo_module(); }
  xla::BufferAssignmentProto& buffers() { return *proto_.mutable_buffer_assignment(); }
  std::string Serialize() const { return proto_.SerializeAsString(); }

 private:
  xla::HloProto proto_;
  xla::HloComputationProto* computation_;
  int64_t next_instruction_id_ = 101;
};

// A module with one of everything that the decoder looks at.
HloModuleBuilder RichModule();

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_HLO_MODULE_BUILDER_H_
