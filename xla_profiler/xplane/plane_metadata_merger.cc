#include "xla_profiler/xplane/plane_metadata_merger.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using google::protobuf::RepeatedPtrField;

// Returns a hash of what the entry says besides its id and children.
absl::uint128 ContentOf(XEventMetadataProto metadata) {
  metadata.clear_id();
  metadata.clear_child_id();
  return HashOfText(metadata.SerializeAsString());
}

// The error of an id without metadata; `kind` is "event" or "stat".
absl::Status UndefinedMetadataId(const XPlaneProto& plane, absl::string_view kind, int64_t id) {
  return InvalidArgument("plane \"", plane.name(), "\": ", kind, " metadata id ", id,
                         " is used but not defined in its plane");
}

absl::Status CheckStatIds(const XPlaneProto& plane, const RepeatedPtrField<XStatProto>& stats) {
  for (const XStatProto& stat : stats) {
    if (!plane.stat_metadata().contains(stat.metadata_id())) {
      return UndefinedMetadataId(plane, "stat", stat.metadata_id());
    }
    const int64_t referred = static_cast<int64_t>(stat.ref_value());
    if (stat.has_ref_value() && !plane.stat_metadata().contains(referred)) {
      return UndefinedMetadataId(plane, "stat", referred);
    }
  }
  return absl::OkStatus();
}

// Replaces the ids of the stat, and of what it refers to.
void TranslateStat(const MetadataIds& ids, XStatProto* stat) {
  stat->set_metadata_id(*ids.stats.Find(stat->metadata_id()));
  if (stat->has_ref_value()) {
    stat->set_ref_value(
        static_cast<uint64_t>(*ids.stats.Find(static_cast<int64_t>(stat->ref_value()))));
  }
}

}  // namespace

const XStatProto* FindStat(const RepeatedPtrField<XStatProto>& stats, int64_t metadata_id) {
  for (const XStatProto& stat : stats) {
    if (stat.metadata_id() == metadata_id) return &stat;
  }
  return nullptr;
}

absl::Status CheckMetadataIds(const XPlaneProto& plane) {
  for (int64_t id : SortedIds(plane.event_metadata())) {
    const XEventMetadataProto& metadata = plane.event_metadata().at(id);
    RETURN_IF_ERROR(CheckStatIds(plane, metadata.stats()));
    for (int64_t child_id : metadata.child_id()) {
      if (!plane.event_metadata().contains(child_id))
        return UndefinedMetadataId(plane, "event", child_id);
    }
  }
  return absl::OkStatus();
}

PlaneMetadataMerger::PlaneMetadataMerger(XPlaneProto* dst) : dst_(dst), builder_(dst) {
  for (int64_t id : SortedIds(dst->event_metadata())) {
    const XEventMetadataProto* metadata = &dst->event_metadata().at(id);
    if (!metadata->name().empty()) event_metadata_.emplace(ContentOf(*metadata), id);
  }
}

MetadataIds PlaneMetadataMerger::Merge(const XPlaneProto& src) {
  MetadataIds ids;
  MergeStatMetadata(src, &ids);
  // Event metadata have stats, so that comes second.
  MergeEventMetadata(src, &ids);
  MergeChildren(src, ids);
  return ids;
}

void PlaneMetadataMerger::MergeStatMetadata(const XPlaneProto& src, MetadataIds* ids) {
  ids->stats.Reserve(src.stat_metadata().size());
  for (int64_t id : SortedIds(src.stat_metadata())) {
    const XStatMetadataProto& metadata = src.stat_metadata().at(id);
    XStatMetadataProto* dst = metadata.name().empty()
                                  ? builder_.CreateStatMetadata()
                                  : builder_.GetOrCreateStatMetadata(metadata.name());
    if (dst->description().empty()) dst->set_description(metadata.description());
    *ids->stats.Add(id) = dst->id();
  }
}

void PlaneMetadataMerger::MergeEventMetadata(const XPlaneProto& src, MetadataIds* ids) {
  ids->events.Reserve(src.event_metadata().size());
  for (int64_t id : SortedIds(src.event_metadata())) {
    XEventMetadataProto metadata = src.event_metadata().at(id);
    for (XStatProto& stat : *metadata.mutable_stats()) TranslateStat(*ids, &stat);
    metadata.clear_child_id();
    const bool has_name = !metadata.name().empty();
    const absl::uint128 content = ContentOf(metadata);
    const auto known = event_metadata_.find(content);
    const bool is_known = has_name && known != event_metadata_.end();
    const int64_t new_id = is_known ? known->second : AddEventMetadata(id, std::move(metadata));
    if (has_name) event_metadata_.emplace(content, new_id);
    *ids->events.Add(id) = new_id;
  }
}

int64_t PlaneMetadataMerger::AddEventMetadata(int64_t id, XEventMetadataProto metadata) {
  XEventMetadataProto* added = dst_->event_metadata().contains(id)
                                   ? builder_.CreateEventMetadata()
                                   : builder_.GetOrCreateEventMetadata(id);
  metadata.set_id(added->id());
  *added = std::move(metadata);
  return added->id();
}

void PlaneMetadataMerger::MergeChildren(const XPlaneProto& src, const MetadataIds& ids) {
  for (int64_t id : SortedIds(src.event_metadata())) {
    const XEventMetadataProto& metadata = src.event_metadata().at(id);
    if (metadata.child_id().empty()) continue;
    XEventMetadataProto* dst = builder_.GetOrCreateEventMetadata(*ids.events.Find(id));
    absl::flat_hash_set<int64_t> known(dst->child_id().begin(), dst->child_id().end());
    for (int64_t child_id : metadata.child_id()) {
      const int64_t dst_child_id = *ids.events.Find(child_id);
      if (known.insert(dst_child_id).second) dst->add_child_id(dst_child_id);
    }
  }
}

}  // namespace meridian
