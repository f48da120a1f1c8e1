#include "trace_alignment/combine/program_table.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Field numbers of hlo.proto.
constexpr uint32_t kHloProtoModule = 1;
constexpr uint32_t kHloModuleSchedule = 7;

// Returns a serialized HloProto whose module has another id. What is damaged stays as it is.
std::string WithModuleId(const std::string& bytes, uint64_t id) {
  xla::HloProto hlo;
  if (!hlo.ParseFromString(bytes)) return bytes;
  hlo.mutable_hlo_module()->set_id(static_cast<int64_t>(id));
  return SerializeWithSortedMaps(hlo);
}

// Adds up the hashes of a message's fields, so that their order does not matter; of the field that
// comes first in `path` those of its own fields, by the rest of the path.
absl::uint128 UnorderedHash(absl::string_view message, absl::Span<const uint32_t> path) {
  absl::uint128 sum = 0;
  WireReader reader(message, message.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    const bool enters = !path.empty() && field.IsBytes(path[0]);
    sum += enters ? UnorderedHash(field.bytes, path.subspan(1)) : HashOfText(field.raw);
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
      // The schedule of an HloProto's module is a map, which every process writes in an order of its
      // own.
      hash.AddHash(UnorderedHash(stat.bytes_value(), {kHloProtoModule, kHloModuleSchedule}));
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
