// SPDX-License-Identifier: Apache-2.0
// Joins the metadata of several planes into one plane's.
#ifndef XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_
#define XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "xla_profiler/xplane/metadata_table.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"

namespace meridian {

// Checks that the ids which the plane's event metadata use are defined in the plane.
// InvalidArgument names the plane and the id.
absl::Status CheckMetadataIds(const XPlaneProto& plane);

// - Stat metadata of the same name is the same.
// - Event metadata that says the same is the same, and has the children of both. A new entry keeps
//   its id if that is free, because some writers put a program's fingerprint there.
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
  // Returns the new entry's id.
  int64_t AddEventMetadata(int64_t id, XEventMetadataProto metadata);

  XPlaneProto* dst_;
  PlaneMetadataBuilder builder_;
  // The ids of dst's entries that have a name, by the hash of what they say.
  absl::flat_hash_map<absl::uint128, int64_t> event_metadata_;
};

// Returns the ids of a metadata map in ascending order; protobuf's maps have none.
template <typename Metadata>
std::vector<int64_t> SortedIds(const google::protobuf::Map<int64_t, Metadata>& metadata) {
  std::vector<int64_t> ids;
  ids.reserve(metadata.size());
  for (const auto& entry : metadata) ids.push_back(entry.first);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Returns the stat of that metadata, or nullptr if there is none.
const XStatProto* FindStat(const google::protobuf::RepeatedPtrField<XStatProto>& stats,
                           int64_t metadata_id);

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_METADATA_MERGER_H_
