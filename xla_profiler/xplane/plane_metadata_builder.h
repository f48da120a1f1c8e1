// SPDX-License-Identifier: Apache-2.0
// Adds metadata entries to a plane in memory, and finds those it has. For planes without their
// lines, or small ones; large files are rewritten on the wire (xplane_rewriter.h).
#ifndef XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_
#define XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/map.h"
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

// The metadata entries of one kind. They are found in constant time and keep their address.
template <typename Metadata>
class MetadataEntries {
 public:
  explicit MetadataEntries(google::protobuf::Map<int64_t, Metadata>* by_id) : by_id_(*by_id) {
    by_name_.reserve(by_id_.size());
    for (auto& [id, metadata] : by_id_) {
      metadata.set_id(id);
      last_id_ = std::max(last_id_, id);
      Metadata*& named = by_name_[metadata.name()];
      if (named == nullptr || id < named->id()) named = &metadata;
    }
  }

  Metadata* Create() {
    // Past the last int64 the search for a free id goes on from 1.
    do {
      last_id_ = last_id_ == std::numeric_limits<int64_t>::max() ? 1 : last_id_ + 1;
    } while (by_id_.contains(last_id_));
    return GetOrCreate(last_id_);
  }

  Metadata* GetOrCreate(int64_t id) {
    last_id_ = std::max(last_id_, id);
    Metadata* metadata = &by_id_[id];
    metadata->set_id(id);
    return metadata;
  }

  Metadata* GetOrCreate(absl::string_view name) {
    Metadata*& metadata = by_name_[name];
    if (metadata == nullptr) {
      metadata = Create();
      metadata->set_name(std::string(name));
    }
    return metadata;
  }

 private:
  google::protobuf::Map<int64_t, Metadata>& by_id_;
  absl::flat_hash_map<std::string, Metadata*> by_name_;
  int64_t last_id_ = 0;
};

class PlaneMetadataBuilder {
 public:
  // The plane, which must outlive the builder, may have content. Costs time and memory in
  // proportion to its metadata; an entry whose `id` is not its key gets the key's. Of entries that
  // share a name the one with the smallest id is found.
  explicit PlaneMetadataBuilder(XPlaneProto* plane)
      : plane_(plane),
        event_metadata_(plane->mutable_event_metadata()),
        stat_metadata_(plane->mutable_stat_metadata()) {}

  PlaneMetadataBuilder(const PlaneMetadataBuilder&) = delete;
  PlaneMetadataBuilder& operator=(const PlaneMetadataBuilder&) = delete;

  // New entries get the id after the largest, or, when that is the last int64, a free one. An entry
  // made without a name is not found by one that it is given later.
  XEventMetadataProto* CreateEventMetadata() { return event_metadata_.Create(); }
  XStatMetadataProto* CreateStatMetadata() { return stat_metadata_.Create(); }
  XEventMetadataProto* GetOrCreateEventMetadata(int64_t id) {
    return event_metadata_.GetOrCreate(id);
  }
  XEventMetadataProto* GetOrCreateEventMetadata(absl::string_view name) {
    return event_metadata_.GetOrCreate(name);
  }
  XStatMetadataProto* GetOrCreateStatMetadata(absl::string_view name) {
    return stat_metadata_.GetOrCreate(name);
  }
  XStatMetadataProto* GetOrCreateStatMetadata(StatType type) {
    return GetOrCreateStatMetadata(StatTypeName(type));
  }

  // Sets the value of the plane's own stat of that type, which is added if there is none.
  void SetPlaneStat(StatType type, uint64_t value) {
    const int64_t id = GetOrCreateStatMetadata(type)->id();
    auto& stats = *plane_->mutable_stats();
    auto stat = std::find_if(stats.begin(), stats.end(),
                             [id](const XStatProto& stat) { return stat.metadata_id() == id; });
    XStatProto* set = stat == stats.end() ? plane_->add_stats() : &*stat;
    set->set_metadata_id(id);
    set->set_uint64_value(value);
  }

 private:
  XPlaneProto* plane_;
  MetadataEntries<XEventMetadataProto> event_metadata_;
  MetadataEntries<XStatMetadataProto> stat_metadata_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_METADATA_BUILDER_H_
