#include "trace_alignment/combine/program_table.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
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
std::string WithModuleId(absl::string_view hlo, int64_t id) {
  std::string changed;
  StringOutput output(&changed);
  WireReader reader(hlo, hlo.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsBytes(kHloProtoModule)) {
      WriteBytesField(kHloProtoModule,
                      WithVarint(field.bytes, kHloModuleId, static_cast<uint64_t>(id)), &output);
    } else {
      output.Raw(field.raw);
    }
  }
  return reader.status().ok() ? changed : std::string(hlo);
}

// "jit_step(5)" -> "jit_step(9)"; names of another form stay.
std::string RenumberedName(absl::string_view name, int64_t old_id, int64_t new_id) {
  const std::string suffix = absl::StrCat("(", static_cast<uint64_t>(old_id), ")");
  if (!absl::EndsWith(name, suffix)) return std::string(name);
  return absl::StrCat(name.substr(0, name.size() - suffix.size()), "(",
                      static_cast<uint64_t>(new_id), ")");
}

int64_t FindStatId(const XPlaneProto& plane, StatType type, int64_t none) {
  for (int64_t id : SortedIds(plane.stat_metadata())) {
    if (plane.stat_metadata().at(id).name() == StatTypeName(type)) return id;
  }
  return none;
}

void RenumberStat(const RenumberedPrograms& programs, XStatProto* stat) {
  const bool is_signed = stat->value_case() == XStatProto::kInt64Value;
  if (!is_signed && stat->value_case() != XStatProto::kUint64Value) return;
  const uint64_t old_id =
      is_signed ? static_cast<uint64_t>(stat->int64_value()) : stat->uint64_value();
  const auto it = programs.ids.find(old_id);
  if (it == programs.ids.end()) return;
  if (is_signed) {
    stat->set_int64_value(static_cast<int64_t>(it->second));
  } else {
    stat->set_uint64_value(it->second);
  }
}

}  // namespace

ProgramTable::ProgramTable() : merger_(&plane_) {
  plane_.set_name(std::string(kMetadataPlaneName));
}

absl::Status ProgramTable::AddNode(const XPlaneProto& metadata) {
  RETURN_IF_ERROR(CheckMetadataIds(metadata));
  const MetadataIds ids = merger_.Merge(metadata);
  for (int64_t old_id : SortedIds(metadata.event_metadata())) {
    const int64_t new_id = *ids.events.Find(old_id);
    if (new_id != old_id) renumbered_.push_back({nodes_, old_id, new_id});
  }
  ++nodes_;
  return absl::OkStatus();
}

// Names and modules change only now: before, they are what a later node's program is known by.
std::vector<RenumberedPrograms> ProgramTable::Finish() {
  std::vector<RenumberedPrograms> nodes(nodes_);
  const int64_t hlo_stat = FindStatId(plane_, StatType::kHloProto, /*none=*/-1);
  absl::flat_hash_map<int64_t, std::string> new_names;
  for (const Renumbered& program : renumbered_) {
    XEventMetadataProto& metadata = plane_.mutable_event_metadata()->at(program.new_id);
    auto [new_name, is_first] = new_names.try_emplace(program.new_id);
    RenumberedPrograms& node = nodes[program.node];
    node.ids[static_cast<uint64_t>(program.old_id)] = static_cast<uint64_t>(program.new_id);
    if (is_first) {
      new_name->second = RenumberedName(metadata.name(), program.old_id, program.new_id);
      for (XStatProto& stat : *metadata.mutable_stats()) {
        if (stat.metadata_id() != hlo_stat || !stat.has_bytes_value()) continue;
        stat.set_bytes_value(WithModuleId(stat.bytes_value(), program.new_id));
      }
    }
    node.names[metadata.name()] = new_name->second;
  }
  for (const auto& [id, name] : new_names) {
    plane_.mutable_event_metadata()->at(id).set_name(name);
  }
  return nodes;
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
