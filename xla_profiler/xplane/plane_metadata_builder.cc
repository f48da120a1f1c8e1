#include "xla_profiler/xplane/plane_metadata_builder.h"

#include <algorithm>
#include <limits>

#include "google/protobuf/map.h"

namespace meridian {
namespace {

template <typename Metadata>
using MetadataById = google::protobuf::Map<int64_t, Metadata>;
template <typename Metadata>
using MetadataByName = absl::flat_hash_map<std::string, Metadata*>;

// Enters what the plane already has.
template <typename Metadata>
void Index(MetadataById<Metadata>* by_id, MetadataByName<Metadata>* by_name, int64_t* last_id) {
  by_name->reserve(by_id->size());
  for (auto& [id, metadata] : *by_id) {
    metadata.set_id(id);
    *last_id = std::max(*last_id, id);
    Metadata*& named = (*by_name)[metadata.name()];
    if (named == nullptr || id < named->id()) named = &metadata;
  }
}

// Returns an id that no entry has. Past the last int64 the search goes on from 1.
template <typename Metadata>
int64_t FreeId(const MetadataById<Metadata>& by_id, int64_t last_id) {
  do {
    last_id = last_id == std::numeric_limits<int64_t>::max() ? 1 : last_id + 1;
  } while (by_id.contains(last_id));
  return last_id;
}

template <typename Metadata>
Metadata* Create(MetadataById<Metadata>* by_id, int64_t* last_id) {
  *last_id = FreeId(*by_id, *last_id);
  Metadata* metadata = &(*by_id)[*last_id];
  metadata->set_id(*last_id);
  return metadata;
}

template <typename Metadata>
Metadata* GetOrCreate(int64_t id, MetadataById<Metadata>* by_id, int64_t* last_id) {
  *last_id = std::max(*last_id, id);
  Metadata* metadata = &(*by_id)[id];
  metadata->set_id(id);
  return metadata;
}

template <typename Metadata>
Metadata* GetOrCreate(absl::string_view name, MetadataById<Metadata>* by_id,
                      MetadataByName<Metadata>* by_name, int64_t* last_id) {
  Metadata*& metadata = (*by_name)[name];
  if (metadata == nullptr) {
    metadata = Create(by_id, last_id);
    metadata->set_name(std::string(name));
  }
  return metadata;
}

}  // namespace

PlaneMetadataBuilder::PlaneMetadataBuilder(XPlaneProto* plane) : plane_(plane) {
  Index(plane_->mutable_event_metadata(), &event_metadata_by_name_, &last_event_metadata_id_);
  Index(plane_->mutable_stat_metadata(), &stat_metadata_by_name_, &last_stat_metadata_id_);
}

XEventMetadataProto* PlaneMetadataBuilder::CreateEventMetadata() {
  return Create(plane_->mutable_event_metadata(), &last_event_metadata_id_);
}

XStatMetadataProto* PlaneMetadataBuilder::CreateStatMetadata() {
  return Create(plane_->mutable_stat_metadata(), &last_stat_metadata_id_);
}

XEventMetadataProto* PlaneMetadataBuilder::GetOrCreateEventMetadata(int64_t id) {
  return GetOrCreate(id, plane_->mutable_event_metadata(), &last_event_metadata_id_);
}

XEventMetadataProto* PlaneMetadataBuilder::GetOrCreateEventMetadata(absl::string_view name) {
  return GetOrCreate(name, plane_->mutable_event_metadata(), &event_metadata_by_name_,
                     &last_event_metadata_id_);
}

XStatMetadataProto* PlaneMetadataBuilder::GetOrCreateStatMetadata(absl::string_view name) {
  return GetOrCreate(name, plane_->mutable_stat_metadata(), &stat_metadata_by_name_,
                     &last_stat_metadata_id_);
}

void PlaneMetadataBuilder::SetPlaneStat(StatType type, uint64_t value) {
  const int64_t id = GetOrCreateStatMetadata(type)->id();
  auto& stats = *plane_->mutable_stats();
  auto stat = std::find_if(stats.begin(), stats.end(),
                           [id](const XStatProto& stat) { return stat.metadata_id() == id; });
  XStatProto* set = stat == stats.end() ? plane_->add_stats() : &*stat;
  set->set_metadata_id(id);
  set->set_uint64_value(value);
}

}  // namespace meridian
