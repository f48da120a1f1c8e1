#include "trace_alignment/combine/program_table.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Field numbers of hlo.proto.
constexpr uint32_t kHloProtoModule = 1;
constexpr uint32_t kHloModuleId = 5;
constexpr uint32_t kHloModuleSchedule = 7;

// Returns the message with the fields that `write(field, output)` wrote in place of the old ones;
// where it returns false the old one stays. A message that is damaged stays as it is.
template <typename Write>
std::string WithFields(absl::string_view message, Write write) {
  return RewriteFields(message, message.data(), kMaxWireDepth,
                       [&](const WireField& field, StringOutput* output) {
                         if (!write(field, output)) output->Raw(field.raw);
                       })
      .value_or(std::string(message));
}

// Returns a serialized HloProto whose module has another id.
std::string WithModuleId(absl::string_view hlo, uint64_t id) {
  const auto set_id = [&](const WireField& field, StringOutput* output) {
    if (!field.IsVarint(kHloModuleId)) return false;
    WriteVarintField(kHloModuleId, id, output);
    return true;
  };
  return WithFields(hlo, [&](const WireField& field, StringOutput* output) {
    if (!field.IsBytes(kHloProtoModule)) return false;
    WriteBytesField(kHloProtoModule, WithFields(field.bytes, set_id), output);
    return true;
  });
}

// Adds up the hashes of a message's fields, so that their order does not matter.
absl::uint128 UnorderedHash(absl::string_view message) {
  absl::uint128 sum = 0;
  WireReader reader(message, message.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    sum += HashOfText(field.raw);
  }
  return sum;
}

// Returns a hash of a serialized HloProto. The module's schedule is a map, which every process
// writes in an order of its own.
absl::uint128 ModuleHash(absl::string_view hlo) {
  absl::uint128 sum = 0;
  WireReader reader(hlo, hlo.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    ContentHash hash;
    hash.AddNumber(field.number);
    if (field.IsBytes(kHloProtoModule)) {
      WireReader module(field.bytes, field.bytes.data(), kMaxWireDepth);
      WireField part;
      while (module.Next(&part)) {
        hash.AddNumber(part.number);
        if (part.IsBytes(kHloModuleSchedule)) {
          hash.AddHash(UnorderedHash(part.bytes));
        } else {
          hash.AddText(part.raw);
        }
      }
    } else {
      hash.AddText(field.raw);
    }
    sum += hash.value();
  }
  return sum;
}

// A copy of all else, unknown fields included. Stats hold modules, which are long.
XEventMetadataProto WithoutIdsAndStats(XEventMetadataProto* program) {
  google::protobuf::RepeatedPtrField<XStatProto> stats;
  stats.Swap(program->mutable_stats());
  XEventMetadataProto content = *program;
  stats.Swap(program->mutable_stats());
  content.clear_id();
  content.clear_child_id();
  return content;
}

// What the entry says, whatever its key and the ids of its stats.
absl::uint128 ContentOf(const XPlaneProto& plane, XEventMetadataProto* program) {
  ContentHash hash;
  hash.AddText(WithoutIdsAndStats(program).SerializeAsString());
  const auto name_of = [&](int64_t id) -> const std::string& {
    return plane.stat_metadata().at(id).name();
  };
  for (const XStatProto& stat : program->stats()) {
    hash.AddText(name_of(stat.metadata_id()));
    // Modules are long: neither copied nor hashed as they stand.
    if (stat.has_bytes_value()) {
      hash.AddHash(ModuleHash(stat.bytes_value()));
      continue;
    }
    XStatProto value = stat;
    value.clear_metadata_id();
    if (stat.has_ref_value()) {
      value.set_str_value(name_of(static_cast<int64_t>(stat.ref_value())));
    }
    hash.AddText(value.SerializeAsString());
  }
  return hash.value();
}

// Returns -1 when the plane does not define the stat.
int64_t FindStatId(const XPlaneProto& plane, StatType type) {
  for (int64_t id : SortedIds(plane.stat_metadata())) {
    if (plane.stat_metadata().at(id).name() == StatTypeName(type)) return id;
  }
  return -1;
}

std::optional<uint64_t> IntegerOf(const XStatProto& stat) {
  if (stat.value_case() == XStatProto::kUint64Value) return stat.uint64_value();
  if (stat.value_case() != XStatProto::kInt64Value) return std::nullopt;
  return static_cast<uint64_t>(stat.int64_value());
}

// Returns a program's id by its stat, else its name, else its key: writers differ.
uint64_t ProgramId(int64_t key, const XEventMetadataProto& program, int64_t program_stat,
                   const ProgramName& name) {
  const XStatProto* stat = FindStat(program.stats(), program_stat);
  const std::optional<uint64_t> stated = stat == nullptr ? std::nullopt : IntegerOf(*stat);
  if (stated.has_value()) return *stated;
  return name.program_id.value_or(static_cast<uint64_t>(key));
}

// Sets the stat's number in the type that it has.
void SetInteger(uint64_t value, XStatProto* stat) {
  if (stat->value_case() == XStatProto::kInt64Value) {
    stat->set_int64_value(static_cast<int64_t>(value));
  } else {
    stat->set_uint64_value(value);
  }
}

}  // namespace

ProgramTable::ProgramTable() : merger_(&plane_) {
  plane_.set_name(std::string(kMetadataPlaneName));
}

uint64_t ProgramTable::FreeId() const {
  uint64_t id = content_of_id_.size();
  while (content_of_id_.contains(id)) ++id;
  return id;
}

ProgramTable::Place ProgramTable::PlaceProgram(uint64_t program_id, absl::uint128 content) {
  const auto [owner, is_free] = content_of_id_.try_emplace(program_id, content);
  if (is_free) return {program_id, false};
  if (owner->second == content) return {program_id, true};
  const auto renumbered = new_id_of_content_.find(content);
  if (renumbered != new_id_of_content_.end()) return {renumbered->second, true};
  const uint64_t id = FreeId();
  content_of_id_[id] = content;
  new_id_of_content_[content] = id;
  return {id, false};
}

absl::StatusOr<RenumberedPrograms> ProgramTable::AddNode(XPlaneProto metadata) {
  RETURN_IF_ERROR(CheckMetadataIds(metadata));
  RenumberedPrograms renumbered;
  const int64_t hlo_stat = FindStatId(metadata, StatType::kHloProto);
  const int64_t program_stat = FindStatId(metadata, StatType::kProgramId);
  // Of two programs of one id, readers take the first.
  absl::flat_hash_set<uint64_t> own_ids;
  for (int64_t key : SortedIds(metadata.event_metadata())) {
    XEventMetadataProto& program = metadata.mutable_event_metadata()->at(key);
    const std::string old_name = program.name();
    const ProgramName name = ParseProgramName(old_name);
    const uint64_t old_id = ProgramId(key, program, program_stat, name);
    const bool is_first = own_ids.insert(old_id).second;
    const Place place = PlaceProgram(old_id, ContentOf(metadata, &program));
    if (place.id != old_id) {
      const std::string new_name = absl::StrCat(name.module, "(", place.id, ")");
      program.set_name(new_name);
      for (XStatProto& stat : *program.mutable_stats()) {
        if (stat.metadata_id() == program_stat) SetInteger(place.id, &stat);
        if (stat.metadata_id() != hlo_stat || !stat.has_bytes_value()) continue;
        stat.set_bytes_value(WithModuleId(stat.bytes_value(), place.id));
      }
      if (is_first) {
        renumbered.ids[old_id] = place.id;
        renumbered.names[old_name] = new_name;
      }
    }
    if (place.is_known) metadata.mutable_event_metadata()->erase(key);
  }
  RETURN_IF_ERROR(CheckMetadataIds(metadata));
  merger_.Merge(metadata);
  return renumbered;
}

void RenumberMetadata(const RenumberedPrograms& programs, XPlaneProto* plane) {
  if (programs.empty()) return;
  const int64_t program_stat = FindStatId(*plane, StatType::kProgramId);
  for (auto& [id, metadata] : *plane->mutable_event_metadata()) {
    const auto name = programs.names.find(metadata.name());
    if (name != programs.names.end()) metadata.set_name(name->second);
    for (XStatProto& stat : *metadata.mutable_stats()) {
      const std::optional<uint64_t> old_id = IntegerOf(stat);
      if (stat.metadata_id() != program_stat || !old_id.has_value()) continue;
      const auto it = programs.ids.find(*old_id);
      if (it != programs.ids.end()) SetInteger(it->second, &stat);
    }
  }
}

}  // namespace meridian
