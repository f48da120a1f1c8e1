#include "xla_profiler/xplane/plane_additions.h"

#include <algorithm>
#include <limits>

namespace meridian {

PlaneAdditions::PlaneAdditions(const XPlaneVisitor& plane) {
  // Ids at the end of the range leave no room behind them; the numbers before are free then.
  constexpr int64_t kRoom = 1 << 16;
  for (const XStatMetadata& metadata : plane.StatMetadata()) {
    if (metadata.id < std::numeric_limits<int64_t>::max() - kRoom) {
      next_id_ = std::max(next_id_, metadata.id + 1);
    }
  }
}

int64_t PlaneAdditions::DefineStat(absl::string_view name) {
  const int64_t id = next_id_++;
  XStatMetadataProto& metadata = (*additions_.mutable_stat_metadata())[id];
  metadata.set_id(id);
  metadata.set_name(std::string(name));
  return id;
}

XStatProto* PlaneAdditions::AddStat(absl::string_view name) {
  XStatProto* stat = additions_.add_stats();
  stat->set_metadata_id(DefineStat(name));
  return stat;
}

void PlaneAdditions::AddInt64(absl::string_view name, int64_t value) {
  AddStat(name)->set_int64_value(value);
}

void PlaneAdditions::AddDouble(absl::string_view name, double value) {
  AddStat(name)->set_double_value(value);
}

void PlaneAdditions::AddString(absl::string_view name, absl::string_view value) {
  AddStat(name)->set_str_value(std::string(value));
}

}  // namespace meridian
