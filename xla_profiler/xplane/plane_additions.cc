#include "xla_profiler/xplane/plane_additions.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace meridian {

std::string SerializeWithSortedMaps(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

PlaneAdditions::PlaneAdditions(const XPlaneVisitor& plane) {
  for (const XStatMetadata& metadata : plane.StatMetadata()) AvoidId(metadata.id);
  // Some writers use ids of a plane's own stats as data.
  for (const XStatVisitor& stat : plane.Stats()) AvoidId(stat.Id());
}

PlaneAdditions::PlaneAdditions(const XPlaneProto& plane) {
  for (const auto& [id, metadata] : plane.stat_metadata()) AvoidId(id);
  for (const XStatProto& stat : plane.stats()) AvoidId(stat.metadata_id());
}

void PlaneAdditions::AvoidId(int64_t id) {
  // Ids at the end of the range leave no room behind them; the numbers before are free then.
  constexpr int64_t kRoom = int64_t{1} << 32;
  if (id < std::numeric_limits<int64_t>::max() - kRoom) next_id_ = std::max(next_id_, id + 1);
}

int64_t PlaneAdditions::DefineStat(absl::string_view name) {
  const int64_t id = next_id_++;
  XStatMetadataProto& metadata = (*additions_.mutable_stat_metadata())[id];
  metadata.set_id(id);
  metadata.set_name(std::string(name));
  return id;
}

XStatProto* PlaneAdditions::NewStat(absl::string_view name) {
  XStatProto* stat = additions_.add_stats();
  stat->set_metadata_id(DefineStat(name));
  return stat;
}

void PlaneAdditions::AddStat(absl::string_view name, XStatProto stat) {
  stat.set_metadata_id(DefineStat(name));
  *additions_.add_stats() = std::move(stat);
}

}  // namespace meridian
