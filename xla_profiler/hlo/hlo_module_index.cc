#include "xla_profiler/hlo/hlo_module_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_wire.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// By the stat, else the name, else the key: writers differ.
uint64_t ProgramId(const XEventMetadata& metadata, const ProgramName& name) {
  const XStatVisitor* stat = FindStat(metadata.stats, StatType::kProgramId);
  if (stat != nullptr && stat->IntOrUintValue().has_value()) return *stat->IntOrUintValue();
  return name.program_id.value_or(metadata.id);
}

class Fingerprinter {
 public:
  absl::Status AddModule(const HloModule& module) {
    hash_.AddText(module.name());
    const HloComputation* entry = module.entry();
    if (entry == nullptr) return absl::OkStatus();
    for (const HloInstruction* parameter : Parameters(*entry)) {
      hash_.AddNumber(parameter->parameter_number());
      RETURN_IF_ERROR(AddShape(*parameter));
    }
    return entry->root() == nullptr ? absl::OkStatus() : AddShape(*entry->root());
  }

  absl::Status AddCollective(const HloCollective& collective) {
    RETURN_IF_ERROR(collective.status);
    const HloInstruction& instruction = *collective.instruction;
    hash_.AddText(instruction.opcode());
    hash_.AddNumber(instruction.operands().size());
    for (const HloInstruction* operand : instruction.operands()) {
      RETURN_IF_ERROR(AddShape(*operand));
    }
    ASSIGN_OR_RETURN(const HloShape output, OutputShape(collective));
    hash_.AddText(output.ToString());
    AddParticipants(*collective.participants);
    return absl::OkStatus();
  }

  absl::uint128 value() const { return hash_.value(); }

 private:
  // Returns the parameters in the order of their numbers.
  static std::vector<const HloInstruction*> Parameters(const HloComputation& computation) {
    std::vector<const HloInstruction*> parameters;
    for (const HloInstruction& instruction : computation.instructions()) {
      if (instruction.opcode() == "parameter") parameters.push_back(&instruction);
    }
    std::stable_sort(parameters.begin(), parameters.end(),
                     [](const HloInstruction* a, const HloInstruction* b) {
                       return a->parameter_number() < b->parameter_number();
                     });
    return parameters;
  }

  // Shapes and participants are shared by many, so each is hashed once.
  absl::Status AddShape(const HloInstruction& instruction) {
    const auto known = shapes_.find(&instruction);
    if (known != shapes_.end()) {
      hash_.AddHash(known->second);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const HloShape shape, instruction.Shape());
    const absl::uint128 hash = HashOfText(shape.ToString());
    shapes_.emplace(&instruction, hash);
    hash_.AddHash(hash);
    return absl::OkStatus();
  }

  void AddParticipants(const CollectiveParticipants& participants) {
    const auto [known, is_new] = participants_.try_emplace(&participants);
    if (is_new) known->second = HashOfParticipants(participants);
    hash_.AddHash(known->second);
  }

  static absl::uint128 HashOfParticipants(const CollectiveParticipants& participants) {
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

  ContentHash hash_;
  absl::flat_hash_map<const HloInstruction*, absl::uint128> shapes_;
  absl::flat_hash_map<const CollectiveParticipants*, absl::uint128> participants_;
};

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
  Fingerprinter fingerprinter;
  RETURN_IF_ERROR(fingerprinter.AddModule(module));
  for (const HloCollective& collective : collectives.all()) {
    RETURN_IF_ERROR(fingerprinter.AddCollective(collective));
  }
  return fingerprinter.value();
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

absl::StatusOr<std::optional<DeviceAssignment>> HloProgram::ReadDeviceAssignment() const {
  std::optional<absl::string_view> found;
  const auto read_module = [&](const WireField& field) {
    if (field.IsBytes(HloModuleField::kDeviceAssignment)) found = field.bytes;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachField(bytes_, origin_, kHloProtoDepth, [&](const WireField& field) {
    if (!field.IsBytes(HloProtoField::kModule)) return absl::OkStatus();
    return ForEachField(field.bytes, origin_, kHloModuleDepth, read_module);
  }));
  if (!found.has_value()) return std::optional<DeviceAssignment>();
  ASSIGN_OR_RETURN(DeviceAssignment assignment, DeviceAssignment::Decode(*found, origin_));
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
