#include "xla_profiler/xplane/plane_metadata_merger.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using google::protobuf::RepeatedPtrField;

// Of so many entries of one name the last are looked at: a name that all entries of a hostile
// plane share must not cost the square of their number.
constexpr size_t kMaxNamesakes = 64;

// Comparing bytes, a NaN equals itself.
bool SameStat(const XStatProto& a, const XStatProto& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Returns how much `src` says that `dst` does not, or nullopt if they contradict each other. Both
// have ids of the same plane.
std::optional<int> CountAdditions(const XEventMetadataProto& src, const XEventMetadataProto& dst) {
  // Entries of real profiles have a dozen stats; comparing those of a hostile one must not cost the
  // square of their number.
  constexpr int kMaxComparisons = 1 << 14;
  if (dst.stats_size() > 0 && src.stats_size() > kMaxComparisons / dst.stats_size()) {
    return std::nullopt;
  }
  int additions = 0;
  const auto agree = [&](absl::string_view src_text, absl::string_view dst_text) {
    if (src_text.empty() || src_text == dst_text) return true;
    ++additions;
    return dst_text.empty();
  };
  if (!agree(src.display_name(), dst.display_name())) return std::nullopt;
  if (!agree(src.metadata(), dst.metadata())) return std::nullopt;
  for (const XStatProto& stat : src.stats()) {
    const XStatProto* dst_stat = FindStat(dst.stats(), stat.metadata_id());
    if (dst_stat == nullptr) {
      ++additions;
    } else if (!SameStat(stat, *dst_stat)) {
      return std::nullopt;
    }
  }
  return additions;
}

// Adds what CountAdditions counts.
void AddMissing(const XEventMetadataProto& src, XEventMetadataProto* dst) {
  if (dst->display_name().empty()) dst->set_display_name(src.display_name());
  if (dst->metadata().empty()) dst->set_metadata(src.metadata());
  for (const XStatProto& stat : src.stats()) {
    if (FindStat(dst->stats(), stat.metadata_id()) == nullptr) *dst->add_stats() = stat;
  }
}

// The error of an id without metadata; `kind` is "event" or "stat".
absl::Status UndefinedMetadataId(const XPlaneProto& plane, absl::string_view kind, int64_t id) {
  return absl::InvalidArgumentError(absl::StrCat("plane \"", plane.name(), "\": ", kind,
                                                 " metadata id ", id,
                                                 " is used but not defined in its plane"));
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
    XEventMetadataProto* metadata = &dst->mutable_event_metadata()->at(id);
    event_metadata_by_name_[metadata->name()].push_back(metadata);
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
    XEventMetadataProto* dst = FindNamesake(metadata);
    if (dst != nullptr) {
      AddMissing(metadata, dst);
    } else {
      dst = AddEventMetadata(id, std::move(metadata));
    }
    *ids->events.Add(id) = dst->id();
  }
}

// Returns the entry of the same name that needs the fewest additions to say all that `metadata`
// does, or nullptr if all contradict it. What was merged before needs none, so it is found again.
XEventMetadataProto* PlaneMetadataMerger::FindNamesake(const XEventMetadataProto& metadata) const {
  if (metadata.name().empty()) return nullptr;
  const auto it = event_metadata_by_name_.find(metadata.name());
  if (it == event_metadata_by_name_.end()) return nullptr;
  const std::vector<XEventMetadataProto*>& namesakes = it->second;
  XEventMetadataProto* best = nullptr;
  int fewest = 0;
  for (size_t i = namesakes.size() - std::min(namesakes.size(), kMaxNamesakes);
       i < namesakes.size(); ++i) {
    const std::optional<int> additions = CountAdditions(metadata, *namesakes[i]);
    if (!additions.has_value() || (best != nullptr && *additions >= fewest)) continue;
    best = namesakes[i];
    fewest = *additions;
  }
  return best;
}

XEventMetadataProto* PlaneMetadataMerger::AddEventMetadata(int64_t id,
                                                           XEventMetadataProto metadata) {
  XEventMetadataProto* added = dst_->event_metadata().contains(id)
                                   ? builder_.CreateEventMetadata()
                                   : builder_.GetOrCreateEventMetadata(id);
  metadata.set_id(added->id());
  *added = std::move(metadata);
  event_metadata_by_name_[added->name()].push_back(added);
  return added;
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
