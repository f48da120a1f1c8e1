// SPDX-License-Identifier: Apache-2.0
// Adds metadata entries to a plane in memory, and finds those it has. For planes without their
// lines, or small ones; large files are rewritten on the wire (xplane_rewriter.h).
#ifndef XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_
#define XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {

using XSpaceProto = ::tensorflow::profiler::XSpace;
using XPlaneProto = ::tensorflow::profiler::XPlane;
using XLineProto = ::tensorflow::profiler::XLine;
using XEventProto = ::tensorflow::profiler::XEvent;
using XStatProto = ::tensorflow::profiler::XStat;
using XEventMetadataProto = ::tensorflow::profiler::XEventMetadata;
using XStatMetadataProto = ::tensorflow::profiler::XStatMetadata;

// Entries are found in constant time and keep their address.
class PlaneMetadataBuilder {
 public:
  // The plane, which must outlive the builder, may have content. Costs time and memory in
  // proportion to its metadata; an entry whose `id` is not its key gets the key's. Of entries that
  // share a name the one with the smallest id is found.
  explicit PlaneMetadataBuilder(XPlaneProto* plane);

  PlaneMetadataBuilder(const PlaneMetadataBuilder&) = delete;
  PlaneMetadataBuilder& operator=(const PlaneMetadataBuilder&) = delete;

  // New entries get the id after the largest, or, when that is the last int64, a free one. An entry
  // made without a name is not found by one that it is given later.
  XEventMetadataProto* CreateEventMetadata();
  XStatMetadataProto* CreateStatMetadata();
  XEventMetadataProto* GetOrCreateEventMetadata(int64_t id);
  XEventMetadataProto* GetOrCreateEventMetadata(absl::string_view name);
  XStatMetadataProto* GetOrCreateStatMetadata(absl::string_view name);
  XStatMetadataProto* GetOrCreateStatMetadata(StatType type) {
    return GetOrCreateStatMetadata(StatTypeName(type));
  }

  // Sets the value of the plane's own stat of that type, which is added if there is none.
  void SetPlaneStat(StatType type, uint64_t value);

 private:
  XPlaneProto* plane_;
  int64_t last_event_metadata_id_ = 0;
  int64_t last_stat_metadata_id_ = 0;
  absl::flat_hash_map<std::string, XEventMetadataProto*> event_metadata_by_name_;
  absl::flat_hash_map<std::string, XStatMetadataProto*> stat_metadata_by_name_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_
