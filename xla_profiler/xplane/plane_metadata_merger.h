// Joins the metadata of several planes into one plane's.
#ifndef XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_
#define XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "xla_profiler/xplane/metadata_table.h"
#include "xla_profiler/xplane/xplane_builder.h"

namespace meridian {

// From the ids of one plane to those of another, by kind of metadata.
struct MetadataIds {
  MetadataTable<int64_t> events;
  MetadataTable<int64_t> stats;
};

// Check that the ids which the plane's event metadata, or such stats, use are defined in the plane.
// InvalidArgument names the plane and the id.
absl::Status CheckMetadataIds(const XPlaneProto& plane);
absl::Status CheckStatIds(const XPlaneProto& plane,
                          const google::protobuf::RepeatedPtrField<XStatProto>& stats);

// The error of such an id; `kind` is "event" or "stat".
absl::Status UndefinedMetadataId(const XPlaneProto& plane, absl::string_view kind, int64_t id);

// - Stat metadata of the same name is the same.
// - Event metadata of the same name is the same, too, and is given the stats, children,
//   display_name and metadata that it lacks; but where the two contradict each other, the later
//   becomes an entry of its own. A new entry keeps its id if that is free, because some writers put
//   a program's fingerprint there.
// - Merging a plane again adds nothing. Entries without a name, though, are never the same as
//   another.
class PlaneMetadataMerger {
 public:
  // What `dst` has stays. It must outlive this, and be changed by nobody else meanwhile.
  explicit PlaneMetadataMerger(XPlaneProto* dst);

  // Adds the plane's metadata and returns what became of its ids, which must have been checked.
  MetadataIds Merge(const XPlaneProto& src);

 private:
  void MergeStatMetadata(const XPlaneProto& src, MetadataIds* ids);
  void MergeEventMetadata(const XPlaneProto& src, MetadataIds* ids);
  void MergeChildren(const XPlaneProto& src, const MetadataIds& ids);
  XEventMetadataProto* FindNamesake(const XEventMetadataProto& metadata) const;
  XEventMetadataProto* AddEventMetadata(int64_t id, XEventMetadataProto metadata);

  XPlaneProto* dst_;
  XPlaneBuilder builder_;
  // Of dst. Event metadata may share a name.
  absl::flat_hash_map<std::string, std::vector<XEventMetadataProto*>> event_metadata_by_name_;
};

// Replaces the ids of the stat, and of what it refers to.
void TranslateStat(const MetadataIds& ids, XStatProto* stat);

// The ids in ascending order; protobuf's maps have none.
template <typename Metadata>
std::vector<int64_t> SortedIds(const google::protobuf::Map<int64_t, Metadata>& metadata);

// Returns the stat of that metadata, or nullptr if there is none.
const XStatProto* FindStat(const google::protobuf::RepeatedPtrField<XStatProto>& stats,
                           int64_t metadata_id);

// Implementation only below.

template <typename Metadata>
std::vector<int64_t> SortedIds(const google::protobuf::Map<int64_t, Metadata>& metadata) {
  std::vector<int64_t> ids;
  ids.reserve(metadata.size());
  for (const auto& entry : metadata) ids.push_back(entry.first);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_
