#include "xla_profiler/hlo/hlo_module.h"

#include <cstddef>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"

namespace meridian {
namespace {

// What a hostile file may cost: an empty instruction is two bytes in the file and half a thousand in
// memory.
constexpr size_t kMaxParts = size_t{1} << 22;

// Counts computations, instructions and where they come from before they cost memory.
absl::Status CheckParts(absl::string_view bytes, const char* origin) {
  size_t parts = 0;
  WireReader protos(bytes, origin, kMaxWireDepth);
  for (WireField proto; protos.Next(&proto);) {
    if (!proto.IsBytes(xla::HloProto::kHloModuleFieldNumber)) continue;
    WireReader computations(proto.bytes, origin, kMaxWireDepth - 1);
    for (WireField computation; computations.Next(&computation);) {
      if (!computation.IsBytes(xla::HloModuleProto::kComputationsFieldNumber) &&
          !computation.IsBytes(xla::HloModuleProto::kStackFrameIndexFieldNumber)) {
        continue;
      }
      ++parts;
      WireReader instructions(computation.bytes, origin, kMaxWireDepth - 2);
      for (WireField instruction; instructions.Next(&instruction);) ++parts;
      RETURN_IF_ERROR(instructions.status());
      if (parts > kMaxParts) {
        return WireError(computation.bytes.data(), origin,
                         absl::StrCat("more than ", kMaxParts, " computations and instructions"));
      }
    }
    RETURN_IF_ERROR(computations.status());
  }
  return protos.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HloModule>> HloModule::Decode(absl::string_view bytes,
                                                             const char* origin) {
  RETURN_IF_ERROR(CheckParts(bytes, origin));
  std::unique_ptr<HloModule> module = absl::WrapUnique(new HloModule);
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !module->proto_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return WireError(bytes.data(), origin, "the HLO module that begins here is damaged");
  }
  const xla::HloModuleProto& proto = module->proto_.hlo_module();
  if (proto.has_device_assignment()) {
    absl::StatusOr<DeviceAssignment> assignment =
        DeviceAssignment::FromProto(proto.device_assignment());
    if (!assignment.ok()) return WireError(bytes.data(), origin, assignment.status().message());
    module->device_assignment_ = *std::move(assignment);
  }
  module->Index();
  module->ResolveReferences();
  return module;
}

void HloModule::Index() {
  xla::HloModuleProto& module = *proto_.mutable_hlo_module();
  size_t num_instructions = 0;
  for (const xla::HloComputationProto& proto : module.computations()) {
    num_instructions += proto.instructions_size();
  }
  // They are pointed to, so they must not move.
  computations_.resize(module.computations_size());
  instructions_.reserve(num_instructions);
  by_name_.reserve(num_instructions);
  by_id_.reserve(num_instructions);
  for (int c = 0; c < module.computations_size(); ++c) {
    HloComputation& computation = computations_[c];
    computation.proto_ = &module.computations(c);
    computation.module_ = this;
    CountUnless(computations_by_id_.emplace(computation.id(), &computation).second);
    const size_t begin = instructions_.size();
    for (xla::HloInstructionProto& proto :
         *module.mutable_computations(c)->mutable_instructions()) {
      // Constants, which can be most of a module, are among the fields that hlo.proto leaves out.
      const google::protobuf::Reflection& reflection = *proto.GetReflection();
      if (!reflection.GetUnknownFields(proto).empty()) {
        reflection.MutableUnknownFields(&proto)->Clear();
      }
      HloInstruction& instruction = instructions_.emplace_back();
      instruction.proto_ = &proto;
      instruction.computation_ = &computation;
      CountUnless(by_name_.emplace(instruction.name(), &instruction).second);
      CountUnless(by_id_.emplace(instruction.id(), &instruction).second);
    }
    computation.instructions_ = absl::MakeConstSpan(instructions_).subspan(begin);
  }
}

void HloModule::ResolveReferences() {
  for (HloInstruction& instruction : instructions_) {
    const xla::HloInstructionProto& proto = instruction.proto();
    instruction.operands_ = Resolve(proto.operand_ids(), by_id_);
    instruction.control_predecessors_ = Resolve(proto.control_predecessor_ids(), by_id_);
    instruction.called_computations_ = Resolve(proto.called_computation_ids(), computations_by_id_);
  }
  const xla::HloModuleProto& module = proto_.hlo_module();
  // An entry of no id, which reads as 0, is found by its name.
  const bool has_entry_id =
      module.entry_computation_id() != 0 || module.entry_computation_name().empty();
  if (has_entry_id) entry_ = FindComputationById(module.entry_computation_id());
  for (HloComputation& computation : computations_) {
    // A root belongs to its computation; an instruction of that id elsewhere is not it.
    const HloInstruction* root = FindInstructionById(computation.proto_->root_id());
    if (root != nullptr && root->computation_ == &computation) computation.root_ = root;
    CountUnless(computation.root_ != nullptr);
    if (!has_entry_id && computation.name() == module.entry_computation_name()) {
      entry_ = &computation;
    }
  }
  CountUnless(entry_ != nullptr);
  for (const auto& [id, sequence] : module.schedule().sequences()) {
    const auto computation = computations_by_id_.find(id);
    CountUnless(computation != computations_by_id_.end());
    if (computation == computations_by_id_.end()) continue;
    computation->second->schedule_ = Resolve(sequence.instruction_ids(), by_id_);
  }
}

template <typename Ids, typename Pointer>
std::vector<const Pointer*> HloModule::Resolve(
    const Ids& ids, const absl::flat_hash_map<int64_t, Pointer*>& by_id) {
  std::vector<const Pointer*> found;
  found.reserve(ids.size());
  for (const int64_t id : ids) {
    const auto it = by_id.find(id);
    CountUnless(it != by_id.end());
    if (it != by_id.end()) found.push_back(it->second);
  }
  return found;
}

std::string HloModule::SourceOf(const HloInstruction& instruction) const {
  const xla::OpMetadata& metadata = instruction.proto().metadata();
  if (!metadata.source_file().empty()) {
    return absl::StrCat(metadata.source_file(), ":", metadata.source_line());
  }
  const xla::StackFrameIndexProto& index = proto_.hlo_module().stack_frame_index();
  const auto at = [](const auto& list, int32_t id) {
    return id >= 1 && id <= list.size() ? &list[id - 1] : nullptr;
  };
  const auto* frame = at(index.stack_frames(), metadata.stack_frame_id());
  const auto* location =
      frame == nullptr ? nullptr : at(index.file_locations(), frame->file_location_id());
  const std::string* file =
      location == nullptr ? nullptr : at(index.file_names(), location->file_name_id());
  return file == nullptr ? "" : absl::StrCat(*file, ":", location->line());
}

const HloInstruction* HloModule::FindInstruction(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const HloInstruction* HloModule::FindInstructionById(int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

const HloComputation* HloModule::FindComputationById(int64_t id) const {
  const auto it = computations_by_id_.find(id);
  return it == computations_by_id_.end() ? nullptr : it->second;
}

}  // namespace meridian
