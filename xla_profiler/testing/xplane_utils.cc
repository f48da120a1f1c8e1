#include "xla_profiler/testing/xplane_utils.h"

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
#include "google/protobuf/repeated_ptr_field.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/xplane/plane_metadata_merger.h"

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

// Checks that the ids which a plane uses have metadata.
absl::Status CheckIds(const XPlaneProto& plane) {
  RETURN_IF_ERROR(CheckMetadataIds(plane));
  RETURN_IF_ERROR(CheckStatIds(plane, plane.stats()));
  for (const XLineProto& line : plane.lines()) {
    for (const XEventProto& event : line.events()) {
      if (!plane.event_metadata().contains(event.metadata_id())) {
        return UndefinedMetadataId(plane, "event", event.metadata_id());
      }
      RETURN_IF_ERROR(CheckStatIds(plane, event.stats()));
    }
  }
  return absl::OkStatus();
}

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
      : timestamps_(std::move(timestamps)), dst_(dst), builder_(dst), metadata_(dst) {
    for (XLineProto& line : *dst->mutable_lines()) lines_by_id_.try_emplace(line.id(), &line);
  }

  // The ids must have been checked.
  absl::Status Merge(const XPlaneProto& src) {
    ids_ = metadata_.Merge(src);
    MergeStats(src);
    for (const XLineProto& line : src.lines()) RETURN_IF_ERROR(MergeLine(line));
    return absl::OkStatus();
  }

 private:
  void MergeStats(const XPlaneProto& src) {
    for (XStatProto stat : src.stats()) {
      TranslateStat(ids_, &stat);
      if (FindStat(dst_->stats(), stat.metadata_id()) == nullptr) *dst_->add_stats() = stat;
    }
  }

  absl::Status MergeLine(XLineProto line) {
    for (XEventProto& event : *line.mutable_events()) {
      event.set_metadata_id(*ids_.events.Find(event.metadata_id()));
      for (XStatProto& stat : *event.mutable_stats()) TranslateStat(ids_, &stat);
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

  const TimestampNsByLineId timestamps_;
  XPlaneProto* dst_;
  XPlaneBuilder builder_;
  PlaneMetadataMerger metadata_;
  absl::flat_hash_map<int64_t, XLineProto*> lines_by_id_;
  // From the plane being merged to dst.
  MetadataIds ids_;
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
  RETURN_IF_ERROR(CheckIds(*dst));
  for (const XPlaneProto* plane : planes) RETURN_IF_ERROR(CheckIds(*plane));
  ASSIGN_OR_RETURN(TimestampNsByLineId timestamps, FindJointTimestamps(planes, *dst));

  PlaneMerger merger(std::move(timestamps), dst);
  for (const XPlaneProto* plane : planes) RETURN_IF_ERROR(merger.Merge(*plane));
  return absl::OkStatus();
}

}  // namespace meridian
