#include "trace_alignment/combine/program_table.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/program_name.h"
#include "xla_profiler/util/stable_hash.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/wire/wire_reader.h"
#include "xla_profiler/wire/wire_writer.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Field numbers of hlo.proto.
constexpr uint32_t kHloProtoModule = 1;
constexpr uint32_t kHloModuleId = 5;

// Returns the message with every such varint field set to the value; a missing one is not added. A
// message that is damaged stays as it is.
std::string WithVarint(absl::string_view message, uint32_t number, uint64_t value) {
  std::string changed;
  StringOutput output(&changed);
  WireReader reader(message, message.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(number)) {
      WriteVarintField(number, value, &output);
    } else {
      output.Raw(field.raw);
    }
  }
  return reader.status().ok() ? changed : std::string(message);
}

// A serialized HloProto whose module has another id.
std::string WithModuleId(absl::string_view hlo, uint64_t id) {
  std::string changed;
  StringOutput output(&changed);
  WireReader reader(hlo, hlo.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(kHloProtoModule)) {
      WriteBytesField(kHloProtoModule, WithVarint(field.bytes, kHloModuleId, id), &output);
    } else {
      output.Raw(field.raw);
    }
  }
  return reader.status().ok() ? changed : std::string(hlo);
}

// What the entry says, whatever its key and the ids of its stats.
uint64_t ContentOf(const XPlaneProto& plane, const XEventMetadataProto& program) {
  XEventMetadataProto content = program;
  content.clear_id();
  content.clear_stats();
  content.clear_child_id();
  StableHash hash;
  hash.AddText(content.SerializeAsString());
  const auto name_of = [&](int64_t id) { return plane.stat_metadata().at(id).name(); };
  for (XStatProto stat : program.stats()) {
    hash.AddText(name_of(stat.metadata_id()));
    stat.clear_metadata_id();
    if (stat.has_ref_value()) {
      stat.set_str_value(name_of(static_cast<int64_t>(stat.ref_value())));
    }
    hash.AddText(stat.SerializeAsString());
  }
  return hash.value();
}

int64_t FindStatId(const XPlaneProto& plane, StatType type, int64_t none) {
  for (int64_t id : SortedIds(plane.stat_metadata())) {
    if (plane.stat_metadata().at(id).name() == StatTypeName(type)) return id;
  }
  return none;
}

std::optional<uint64_t> IntegerOf(const XStatProto& stat) {
  if (stat.value_case() == XStatProto::kUint64Value) return stat.uint64_value();
  if (stat.value_case() != XStatProto::kInt64Value) return std::nullopt;
  return static_cast<uint64_t>(stat.int64_value());
}

// By the stat, else the name, else the key: writers differ.
uint64_t ProgramId(const XEventMetadataProto& program, int64_t program_stat,
                   const ProgramName& name) {
  const XStatProto* stat = FindStat(program.stats(), program_stat);
  const std::optional<uint64_t> stated = stat == nullptr ? std::nullopt : IntegerOf(*stat);
  if (stated.has_value()) return *stated;
  return name.program_id.value_or(static_cast<uint64_t>(program.id()));
}

void RenumberStat(const RenumberedPrograms& programs, XStatProto* stat) {
  const std::optional<uint64_t> old_id = IntegerOf(*stat);
  if (!old_id.has_value()) return;
  const auto it = programs.ids.find(*old_id);
  if (it == programs.ids.end()) return;
  if (stat->value_case() == XStatProto::kInt64Value) {
    stat->set_int64_value(static_cast<int64_t>(it->second));
  } else {
    stat->set_uint64_value(it->second);
  }
}

}  // namespace

ProgramTable::ProgramTable() : merger_(&plane_) {
  plane_.set_name(std::string(kMetadataPlaneName));
}

uint64_t ProgramTable::PlaceProgram(uint64_t program_id, uint64_t content) {
  const auto [owner, is_free] = content_of_id_.try_emplace(program_id, content);
  if (is_free || owner->second == content) {
    largest_id_ = std::max(largest_id_, program_id);
    return program_id;
  }
  const auto [renumbered, is_new] = new_id_of_content_.try_emplace(content, 0);
  if (is_new) {
    renumbered->second = ++largest_id_;
    content_of_id_[renumbered->second] = content;
  }
  return renumbered->second;
}

absl::StatusOr<RenumberedPrograms> ProgramTable::AddNode(XPlaneProto metadata) {
  RETURN_IF_ERROR(CheckMetadataIds(metadata));
  RenumberedPrograms renumbered;
  const int64_t hlo_stat = FindStatId(metadata, StatType::kHloProto, /*none=*/-1);
  const int64_t program_stat = FindStatId(metadata, StatType::kProgramId, /*none=*/-1);
  for (int64_t key : SortedIds(metadata.event_metadata())) {
    XEventMetadataProto& program = metadata.mutable_event_metadata()->at(key);
    const ProgramName name = ParseProgramName(program.name());
    const uint64_t old_id = ProgramId(program, program_stat, name);
    const uint64_t new_id = PlaceProgram(old_id, ContentOf(metadata, program));
    if (new_id == old_id) continue;
    const std::string new_name = absl::StrCat(name.module, "(", new_id, ")");
    renumbered.ids[old_id] = new_id;
    renumbered.names[program.name()] = new_name;
    program.set_name(new_name);
    for (XStatProto& stat : *program.mutable_stats()) {
      if (stat.metadata_id() == program_stat) RenumberStat(renumbered, &stat);
      if (stat.metadata_id() != hlo_stat || !stat.has_bytes_value()) continue;
      stat.set_bytes_value(WithModuleId(stat.bytes_value(), new_id));
    }
  }
  merger_.Merge(metadata);
  return renumbered;
}

std::string ProgramTable::Serialize() const {
  return plane_.event_metadata().empty() ? "" : plane_.SerializeAsString();
}

void RenumberMetadata(const RenumberedPrograms& programs, XPlaneProto* plane) {
  if (programs.empty()) return;
  const int64_t program_stat = FindStatId(*plane, StatType::kProgramId, /*none=*/-1);
  for (auto& [id, metadata] : *plane->mutable_event_metadata()) {
    const auto name = programs.names.find(metadata.name());
    if (name != programs.names.end()) metadata.set_name(name->second);
    for (XStatProto& stat : *metadata.mutable_stats()) {
      if (stat.metadata_id() == program_stat) RenumberStat(programs, &stat);
    }
  }
}

}  // namespace meridian
