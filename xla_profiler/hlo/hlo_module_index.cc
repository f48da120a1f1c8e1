#include "xla_profiler/hlo/hlo_module_index.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// By the stat, else the name, else the key: writers differ.
uint64_t ProgramId(const XEventMetadata& metadata, const ProgramName& name) {
  const XStatVisitor* stat = FindStat(metadata.stats, StatType::kProgramId);
  if (stat != nullptr && stat->IntOrUintValue().has_value()) return *stat->IntOrUintValue();
  return name.program_id.value_or(metadata.id);
}

void AddShape(const xla::ShapeProto& shape, ContentHash* hash) {
  hash->AddHash(HashOfText(ShapeText(shape)));
}

// Returns the parameters in the order of their numbers.
std::vector<const HloInstruction*> Parameters(const HloComputation& computation) {
  std::vector<const HloInstruction*> parameters;
  for (const HloInstruction& instruction : computation.instructions()) {
    if (instruction.opcode() == "parameter") parameters.push_back(&instruction);
  }
  absl::c_stable_sort(parameters, [](const HloInstruction* a, const HloInstruction* b) {
    return a->proto().parameter_number() < b->proto().parameter_number();
  });
  return parameters;
}

absl::uint128 HashOfParticipants(const CollectiveParticipants& participants) {
  ContentHash hash;
  const IdGroups& groups = participants.logical_groups;
  hash.AddNumber(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    hash.AddNumber(groups[i].size());
    for (int64_t id : groups[i]) hash.AddNumber(id);
  }
  hash.AddNumber(participants.logical_pairs.size());
  for (const SourceTargetPair& pair : participants.logical_pairs) {
    hash.AddNumber(pair.source);
    hash.AddNumber(pair.target);
  }
  return hash.value();
}

}  // namespace

ProgramName ParseProgramName(absl::string_view name) {
  const size_t open = name.rfind('(');
  absl::string_view number = name.substr(open == absl::string_view::npos ? name.size() : open);
  uint64_t program_id = 0;
  if (absl::ConsumePrefix(&number, "(") && absl::ConsumeSuffix(&number, ")") &&
      absl::SimpleAtoi(number, &program_id)) {
    return {name.substr(0, open), program_id};
  }
  return {name, std::nullopt};
}

absl::StatusOr<absl::uint128> HloFingerprint(const HloModule& module,
                                             const HloCollectives& collectives) {
  ContentHash hash;
  hash.AddText(module.name());
  if (const HloComputation* entry = module.entry()) {
    for (const HloInstruction* parameter : Parameters(*entry)) {
      hash.AddNumber(parameter->proto().parameter_number());
      AddShape(parameter->shape(), &hash);
    }
    if (entry->root() != nullptr) AddShape(entry->root()->shape(), &hash);
  }
  // Many collectives have the same participants.
  absl::flat_hash_map<const CollectiveParticipants*, absl::uint128> participants;
  for (const HloCollective& collective : collectives.all()) {
    RETURN_IF_ERROR(collective.status);
    const HloInstruction& instruction = *collective.instruction;
    hash.AddText(instruction.opcode());
    hash.AddNumber(instruction.operands().size());
    for (const HloInstruction* operand : instruction.operands()) AddShape(operand->shape(), &hash);
    hash.AddText(ShapeText(OutputShape(collective)));
    const auto [known, is_new] = participants.try_emplace(collective.participants);
    if (is_new) known->second = HashOfParticipants(*collective.participants);
    hash.AddHash(known->second);
  }
  return hash.value();
}

absl::StatusOr<const HloModule*> HloProgram::Module() const {
  if (!module_.has_value()) module_ = HloModule::Decode(bytes_, origin_);
  if (module_->ok()) return (*module_)->get();
  return Annotate(module_->status(), absl::StrCat(name_, "(", program_id_, ")"));
}

absl::StatusOr<const HloCollectives*> HloProgram::Collectives() const {
  if (!collectives_.has_value()) {
    ASSIGN_OR_RETURN(const HloModule* module, Module());
    collectives_.emplace(*module);
  }
  return &*collectives_;
}

absl::StatusOr<absl::uint128> HloProgram::Fingerprint() const {
  if (!fingerprint_.has_value()) {
    ASSIGN_OR_RETURN(const HloModule* module, Module());
    ASSIGN_OR_RETURN(const HloCollectives* collectives, Collectives());
    fingerprint_ = HloFingerprint(*module, *collectives);
  }
  if (fingerprint_->ok()) return **fingerprint_;
  return Annotate(fingerprint_->status(), absl::StrCat(name_, "(", program_id_, ")"));
}

absl::StatusOr<std::optional<absl::string_view>> HloProgram::FindDeviceAssignment() const {
  std::optional<absl::string_view> found;
  WireReader protos(bytes_, origin_, kMaxWireDepth);
  for (WireField proto; protos.Next(&proto);) {
    if (!proto.IsBytes(xla::HloProto::kHloModuleFieldNumber)) continue;
    WireReader parts(proto.bytes, origin_, kMaxWireDepth - 1);
    for (WireField part; parts.Next(&part);) {
      if (part.IsBytes(xla::HloModuleProto::kDeviceAssignmentFieldNumber)) found = part.bytes;
    }
    RETURN_IF_ERROR(parts.status());
  }
  RETURN_IF_ERROR(protos.status());
  return found;
}

absl::StatusOr<std::optional<DeviceAssignment>> HloProgram::ReadDeviceAssignment() const {
  ASSIGN_OR_RETURN(const std::optional<absl::string_view> found, FindDeviceAssignment());
  if (!found.has_value()) return std::optional<DeviceAssignment>();
  xla::DeviceAssignmentProto message;
  if (!message.ParseFromArray(found->data(), static_cast<int>(found->size()))) {
    return WireError(found->data(), origin_, "the device assignment is damaged");
  }
  ASSIGN_OR_RETURN(DeviceAssignment assignment, DeviceAssignment::FromProto(message));
  return std::optional<DeviceAssignment>(std::move(assignment));
}

HloModuleIndex::HloModuleIndex(const XPlaneVisitor& metadata_plane) {
  for (const XEventMetadata& metadata : metadata_plane.EventMetadata()) {
    const XStatVisitor* proto = FindStat(metadata.stats, StatType::kHloProto);
    if (proto == nullptr || proto->value_case() != XStatVisitor::ValueCase::kBytes) continue;
    const ProgramName name = ParseProgramName(metadata.name);
    const uint64_t program_id = ProgramId(metadata, name);
    by_id_.emplace(program_id, programs_.size());
    by_name_[name.module].push_back(programs_.size());
    programs_.emplace_back(program_id, name.module, proto->BytesValue(),
                           metadata_plane.Source().origin());
  }
}

const HloProgram* HloModuleIndex::Find(uint64_t program_id) const {
  const auto it = by_id_.find(program_id);
  return it == by_id_.end() ? nullptr : &programs_[it->second];
}

std::vector<const HloProgram*> HloModuleIndex::FindByName(absl::string_view name) const {
  std::vector<const HloProgram*> found;
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return found;
  for (size_t index : it->second) found.push_back(&programs_[index]);
  return found;
}

}  // namespace meridian
