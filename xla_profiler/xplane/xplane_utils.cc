#include "xla_profiler/xplane/xplane_utils.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/map.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

using google::protobuf::RepeatedPtrField;

// Swaps pointers, not messages.
template <typename Message, typename Predicate>
void RemoveIf(RepeatedPtrField<Message>* messages, Predicate predicate) {
  const auto begin = messages->pointer_begin();
  const auto end = messages->pointer_end();
  const auto removed = std::stable_partition(
      begin, end, [&](const Message* message) { return !predicate(*message); });
  messages->DeleteSubrange(removed - begin, end - removed);
}

template <typename Metadata>
std::vector<int64_t> SortedIds(const google::protobuf::Map<int64_t, Metadata>& metadata) {
  std::vector<int64_t> ids;
  ids.reserve(metadata.size());
  for (const auto& entry : metadata) ids.push_back(entry.first);
  std::sort(ids.begin(), ids.end());
  return ids;
}

const XStatProto* FindStat(const RepeatedPtrField<XStatProto>& stats, int64_t metadata_id) {
  for (const XStatProto& stat : stats) {
    if (stat.metadata_id() == metadata_id) return &stat;
  }
  return nullptr;
}

// Checks that the ids which a plane uses have metadata.
class IdChecker {
 public:
  explicit IdChecker(const XPlaneProto& plane) : plane_(plane) {}

  absl::Status Check() const {
    RETURN_IF_ERROR(CheckStats(plane_.stats()));
    for (int64_t id : SortedIds(plane_.event_metadata())) {
      const XEventMetadataProto& metadata = plane_.event_metadata().at(id);
      RETURN_IF_ERROR(CheckStats(metadata.stats()));
      for (int64_t child_id : metadata.child_id()) RETURN_IF_ERROR(CheckEventId(child_id));
    }
    for (const XLineProto& line : plane_.lines()) {
      for (const XEventProto& event : line.events()) {
        RETURN_IF_ERROR(CheckEventId(event.metadata_id()));
        RETURN_IF_ERROR(CheckStats(event.stats()));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckStats(const RepeatedPtrField<XStatProto>& stats) const {
    for (const XStatProto& stat : stats) {
      RETURN_IF_ERROR(CheckStatId(stat.metadata_id()));
      if (stat.has_ref_value()) {
        RETURN_IF_ERROR(CheckStatId(static_cast<int64_t>(stat.ref_value())));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckEventId(int64_t id) const {
    return plane_.event_metadata().contains(id) ? absl::OkStatus() : Undefined("event", id);
  }
  absl::Status CheckStatId(int64_t id) const {
    return plane_.stat_metadata().contains(id) ? absl::OkStatus() : Undefined("stat", id);
  }
  absl::Status Undefined(absl::string_view kind, int64_t id) const {
    return absl::InvalidArgumentError(absl::StrCat("plane \"", plane_.name(), "\": ", kind,
                                                   " metadata id ", id,
                                                   " is used but not defined in its plane"));
  }

  const XPlaneProto& plane_;
};

using TimestampNsByLineId = absl::flat_hash_map<int64_t, int64_t>;

// Returns the earliest timestamp_ns of the lines that will be joined under each id.
absl::StatusOr<TimestampNsByLineId> FindJointTimestamps(absl::Span<const XPlaneProto* const> planes,
                                                        const XPlaneProto& dst) {
  absl::flat_hash_map<int64_t, std::vector<const XLineProto*>> parts_by_id;
  for (const XLineProto& line : dst.lines()) {
    std::vector<const XLineProto*>& parts = parts_by_id[line.id()];
    // Lines are joined with the first of dst; others that dst has of that id stay.
    if (parts.empty()) parts.push_back(&line);
  }
  for (const XPlaneProto* plane : planes) {
    for (const XLineProto& line : plane->lines()) parts_by_id[line.id()].push_back(&line);
  }

  TimestampNsByLineId timestamps;
  for (const auto& [id, parts] : parts_by_id) {
    int64_t timestamp_ns = parts.front()->timestamp_ns();
    for (const XLineProto* part : parts)
      timestamp_ns = std::min(timestamp_ns, part->timestamp_ns());
    for (const XLineProto* part : parts) RETURN_IF_ERROR(CheckEventOffsetsFit(*part, timestamp_ns));
    timestamps.emplace(id, timestamp_ns);
  }
  return timestamps;
}

// Comparing bytes, a NaN equals itself.
bool SameStat(const XStatProto& a, const XStatProto& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Returns how much `src` says that `dst` does not, or nullopt if they contradict each other. Both
// have ids of the same plane.
std::optional<int> CountAdditions(const XEventMetadataProto& src, const XEventMetadataProto& dst) {
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

// Returns the line's duration_ps when it is based on an earlier timestamp_ns and ends as before.
int64_t MovedDurationPs(const XLineProto& line, int64_t timestamp_ns) {
  if (line.duration_ps() == 0) return 0;
  const absl::int128 duration_ps =
      (absl::int128(line.timestamp_ns()) - timestamp_ns) * 1000 + line.duration_ps();
  return static_cast<int64_t>(
      std::min(duration_ps, absl::int128(std::numeric_limits<int64_t>::max())));
}

// Merges planes, one after the other, into one.
class PlaneMerger {
 public:
  PlaneMerger(TimestampNsByLineId timestamps, XPlaneProto* dst)
      : timestamps_(std::move(timestamps)), dst_(dst), builder_(dst) {
    for (int64_t id : SortedIds(dst->event_metadata())) {
      XEventMetadataProto* metadata = &dst->mutable_event_metadata()->at(id);
      event_metadata_by_name_[metadata->name()].push_back(metadata);
    }
    for (XLineProto& line : *dst->mutable_lines()) lines_by_id_.try_emplace(line.id(), &line);
  }

  // The ids must have been checked.
  absl::Status Merge(const XPlaneProto& src) {
    MergeStatMetadata(src);
    // Event metadata have stats, so that comes second.
    MergeEventMetadata(src);
    MergeChildren(src);
    MergeStats(src);
    for (const XLineProto& line : src.lines()) RETURN_IF_ERROR(MergeLine(line));
    return absl::OkStatus();
  }

 private:
  void MergeStatMetadata(const XPlaneProto& src) {
    stat_ids_.clear();
    for (int64_t id : SortedIds(src.stat_metadata())) {
      const XStatMetadataProto& metadata = src.stat_metadata().at(id);
      XStatMetadataProto* dst = metadata.name().empty()
                                    ? builder_.CreateStatMetadata()
                                    : builder_.GetOrCreateStatMetadata(metadata.name());
      if (dst->description().empty()) dst->set_description(metadata.description());
      stat_ids_.emplace(id, dst->id());
    }
  }

  void MergeEventMetadata(const XPlaneProto& src) {
    event_ids_.clear();
    for (int64_t id : SortedIds(src.event_metadata())) {
      XEventMetadataProto metadata = src.event_metadata().at(id);
      TranslateStats(metadata.mutable_stats());
      metadata.clear_child_id();
      XEventMetadataProto* dst = FindNamesake(metadata);
      if (dst != nullptr) {
        AddMissing(metadata, dst);
      } else {
        dst = AddEventMetadata(id, std::move(metadata));
      }
      event_ids_.emplace(id, dst->id());
    }
  }

  // Returns the entry of the same name that needs the fewest additions to say all that `metadata`
  // does, or nullptr if all contradict it. What was merged before needs none, so it is found again.
  XEventMetadataProto* FindNamesake(const XEventMetadataProto& metadata) const {
    if (metadata.name().empty()) return nullptr;
    const auto it = event_metadata_by_name_.find(metadata.name());
    if (it == event_metadata_by_name_.end()) return nullptr;
    XEventMetadataProto* best = nullptr;
    int fewest = 0;
    for (XEventMetadataProto* namesake : it->second) {
      const std::optional<int> additions = CountAdditions(metadata, *namesake);
      if (!additions.has_value() || (best != nullptr && *additions >= fewest)) continue;
      best = namesake;
      fewest = *additions;
    }
    return best;
  }

  XEventMetadataProto* AddEventMetadata(int64_t id, XEventMetadataProto metadata) {
    XEventMetadataProto* added = dst_->event_metadata().contains(id)
                                     ? builder_.CreateEventMetadata()
                                     : builder_.GetOrCreateEventMetadata(id);
    metadata.set_id(added->id());
    *added = std::move(metadata);
    event_metadata_by_name_[added->name()].push_back(added);
    return added;
  }

  void MergeChildren(const XPlaneProto& src) {
    for (int64_t id : SortedIds(src.event_metadata())) {
      const XEventMetadataProto& metadata = src.event_metadata().at(id);
      if (metadata.child_id().empty()) continue;
      XEventMetadataProto* dst = builder_.GetOrCreateEventMetadata(event_ids_.at(id));
      absl::flat_hash_set<int64_t> known(dst->child_id().begin(), dst->child_id().end());
      for (int64_t child_id : metadata.child_id()) {
        const int64_t dst_child_id = event_ids_.at(child_id);
        if (known.insert(dst_child_id).second) dst->add_child_id(dst_child_id);
      }
    }
  }

  void MergeStats(const XPlaneProto& src) {
    for (XStatProto stat : src.stats()) {
      TranslateStat(&stat);
      if (FindStat(dst_->stats(), stat.metadata_id()) == nullptr) *dst_->add_stats() = stat;
    }
  }

  absl::Status MergeLine(XLineProto line) {
    for (XEventProto& event : *line.mutable_events()) {
      event.set_metadata_id(event_ids_.at(event.metadata_id()));
      TranslateStats(event.mutable_stats());
    }
    RETURN_IF_ERROR(MoveToJointTimestamp(&line));
    XLineProto*& dst = lines_by_id_[line.id()];
    if (dst == nullptr) {
      dst = dst_->add_lines();
      *dst = std::move(line);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(MoveToJointTimestamp(dst));
    JoinLine(std::move(line), dst);
    return absl::OkStatus();
  }

  absl::Status MoveToJointTimestamp(XLineProto* line) {
    const int64_t timestamp_ns = timestamps_.at(line->id());
    if (line->timestamp_ns() == timestamp_ns) return absl::OkStatus();
    line->set_duration_ps(MovedDurationPs(*line, timestamp_ns));
    return XLineBuilder(line, &builder_).SetTimestampNsAndAdjustEventOffsets(timestamp_ns);
  }

  // Both lines have the same timestamp_ns.
  static void JoinLine(XLineProto line, XLineProto* dst) {
    if (dst->name().empty()) dst->set_name(line.name());
    if (dst->display_name().empty()) dst->set_display_name(line.display_name());
    if (dst->display_id() == 0) dst->set_display_id(line.display_id());
    dst->set_duration_ps(std::max(dst->duration_ps(), line.duration_ps()));
    dst->mutable_events()->Reserve(dst->events_size() + line.events_size());
    std::move(line.mutable_events()->begin(), line.mutable_events()->end(),
              google::protobuf::RepeatedFieldBackInserter(dst->mutable_events()));
  }

  // Replace the ids of the plane being merged by dst's.
  void TranslateStat(XStatProto* stat) const {
    stat->set_metadata_id(stat_ids_.at(stat->metadata_id()));
    if (stat->has_ref_value()) {
      stat->set_ref_value(
          static_cast<uint64_t>(stat_ids_.at(static_cast<int64_t>(stat->ref_value()))));
    }
  }
  void TranslateStats(RepeatedPtrField<XStatProto>* stats) const {
    for (XStatProto& stat : *stats) TranslateStat(&stat);
  }

  const TimestampNsByLineId timestamps_;
  XPlaneProto* dst_;
  XPlaneBuilder builder_;
  // Of dst. Event metadata may share a name.
  absl::flat_hash_map<std::string, std::vector<XEventMetadataProto*>> event_metadata_by_name_;
  absl::flat_hash_map<int64_t, XLineProto*> lines_by_id_;
  // From the ids of the plane being merged to dst's.
  absl::flat_hash_map<int64_t, int64_t> stat_ids_;
  absl::flat_hash_map<int64_t, int64_t> event_ids_;
};

}  // namespace

const XPlaneProto* FindPlaneWithName(const XSpaceProto& space, absl::string_view name) {
  for (const XPlaneProto& plane : space.planes()) {
    if (plane.name() == name) return &plane;
  }
  return nullptr;
}

XPlaneProto* FindMutablePlaneWithName(XSpaceProto* space, absl::string_view name) {
  return const_cast<XPlaneProto*>(FindPlaneWithName(*space, name));
}

XPlaneProto* FindOrAddMutablePlaneWithName(XSpaceProto* space, absl::string_view name) {
  XPlaneProto* plane = FindMutablePlaneWithName(space, name);
  if (plane == nullptr) {
    plane = space->add_planes();
    plane->set_name(std::string(name));
  }
  return plane;
}

std::vector<const XPlaneProto*> FindPlanesWithPrefix(const XSpaceProto& space,
                                                     absl::string_view prefix) {
  std::vector<const XPlaneProto*> planes;
  for (const XPlaneProto& plane : space.planes()) {
    if (absl::StartsWith(plane.name(), prefix)) planes.push_back(&plane);
  }
  return planes;
}

const XLineProto* FindLineWithId(const XPlaneProto& plane, int64_t id) {
  for (const XLineProto& line : plane.lines()) {
    if (line.id() == id) return &line;
  }
  return nullptr;
}

const XLineProto* FindLineWithName(const XPlaneProto& plane, absl::string_view name) {
  for (const XLineProto& line : plane.lines()) {
    if (line.name() == name) return &line;
  }
  return nullptr;
}

void RemovePlane(XSpaceProto* space, const XPlaneProto* plane) { RemovePlanes(space, {plane}); }

void RemovePlanes(XSpaceProto* space, absl::Span<const XPlaneProto* const> planes) {
  const absl::flat_hash_set<const XPlaneProto*> removed(planes.begin(), planes.end());
  RemoveIf(space->mutable_planes(),
           [&](const XPlaneProto& plane) { return removed.contains(&plane); });
}

void RemoveEmptyPlanes(XSpaceProto* space) {
  RemoveIf(space->mutable_planes(), [](const XPlaneProto& plane) {
    return plane.lines().empty() && plane.stats().empty() && plane.event_metadata().empty();
  });
}

void RemoveEmptyLines(XPlaneProto* plane) {
  RemoveIf(plane->mutable_lines(), [](const XLineProto& line) { return line.events().empty(); });
}

void SortXLine(XLineProto* line) {
  std::stable_sort(line->mutable_events()->pointer_begin(), line->mutable_events()->pointer_end(),
                   [](const XEventProto* a, const XEventProto* b) {
                     if (a->offset_ps() != b->offset_ps()) return a->offset_ps() < b->offset_ps();
                     return a->duration_ps() > b->duration_ps();
                   });
}

void SortXPlane(XPlaneProto* plane) {
  for (XLineProto& line : *plane->mutable_lines()) SortXLine(&line);
}

void SortXSpace(XSpaceProto* space) {
  for (XPlaneProto& plane : *space->mutable_planes()) SortXPlane(&plane);
}

absl::Status MergePlanes(absl::Span<const XPlaneProto* const> planes, XPlaneProto* dst) {
  // All that can fail comes before dst is touched.
  RETURN_IF_ERROR(IdChecker(*dst).Check());
  for (const XPlaneProto* plane : planes) RETURN_IF_ERROR(IdChecker(*plane).Check());
  ASSIGN_OR_RETURN(TimestampNsByLineId timestamps, FindJointTimestamps(planes, *dst));

  PlaneMerger merger(std::move(timestamps), dst);
  for (const XPlaneProto* plane : planes) RETURN_IF_ERROR(merger.Merge(*plane));
  return absl::OkStatus();
}

}  // namespace meridian
