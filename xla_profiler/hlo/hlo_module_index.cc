#include "xla_profiler/hlo/hlo_module_index.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/status_util.h"
#include "xla_profiler/hlo/hlo_fingerprint.h"
#include "xla_profiler/hlo/hlo_wire.h"
#include "xla_profiler/hlo/program_name.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

const XStatVisitor* FindStat(const XEventMetadata& metadata, StatType type) {
  for (const XStatVisitor& stat : metadata.stats) {
    if (stat.Type() == type) return &stat;
  }
  return nullptr;
}

// By the stat, else the name, else the key: writers differ.
uint64_t ProgramId(const XEventMetadata& metadata, const ProgramName& name) {
  const XStatVisitor* stat = FindStat(metadata, StatType::kProgramId);
  if (stat != nullptr && stat->IntOrUintValue().has_value()) return *stat->IntOrUintValue();
  return name.program_id.value_or(metadata.id);
}

}  // namespace

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

absl::StatusOr<uint64_t> HloProgram::Fingerprint() const {
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
  WireReader proto(bytes_, origin_, kHloProtoDepth);
  WireField field;
  while (proto.Next(&field)) {
    if (!field.IsBytes(HloProtoField::kModule)) continue;
    WireReader module(field.bytes, origin_, kHloModuleDepth);
    WireField part;
    while (module.Next(&part)) {
      if (part.IsBytes(HloModuleField::kDeviceAssignment)) found = part.bytes;
    }
    RETURN_IF_ERROR(module.status());
  }
  RETURN_IF_ERROR(proto.status());
  if (!found.has_value()) return std::optional<DeviceAssignment>();
  ASSIGN_OR_RETURN(DeviceAssignment assignment, DeviceAssignment::Decode(*found, origin_));
  return std::optional<DeviceAssignment>(std::move(assignment));
}

HloModuleIndex::HloModuleIndex(const XPlaneVisitor& metadata_plane) {
  for (const XEventMetadata& metadata : metadata_plane.EventMetadata()) {
    const XStatVisitor* proto = FindStat(metadata, StatType::kHloProto);
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
