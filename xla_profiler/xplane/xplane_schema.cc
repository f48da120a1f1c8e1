#include "xla_profiler/xplane/xplane_schema.h"

#include "absl/container/flat_hash_map.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// In the order of StatType.
constexpr absl::string_view kStatNames[] = {
    "correlation_id",
    "run_id",
    "step_num",
    "device_ordinal",
    "replica",
    "partition",
    "rank",
    "stream",
    "cuda_graph_id",
    "hlo_op",
    "hlo_module",
    "Hlo Proto",
    "program_id",
    "replica_groups",
    "shape",
    "memcpy_details",
    "Memset_details",
    "kineto_category",
    "core_details",
    "profile_start_time",
    "profile_stop_time",
    "rocm_ns",
    "dcn_label",
    "dcn_source_slice_id",
    "dcn_source_per_slice_device_id",
    "dcn_destination_slice_id",
    "dcn_destination_per_slice_device_id",
    "dcn_chunk",
    "dcn_loop_index",
    "payload_size_bytes",
};
static_assert(sizeof(kStatNames) / sizeof(kStatNames[0]) == kNumStatTypes,
              "kStatNames lists every StatType");

}  // namespace

absl::string_view StatTypeName(StatType type) {
  const int index = static_cast<int>(type);
  MERIDIAN_CHECK(index >= 0 && index < kNumStatTypes);
  return kStatNames[index];
}

std::optional<StatType> FindStatType(absl::string_view name) {
  static const auto& types = *[] {
    auto* map = new absl::flat_hash_map<absl::string_view, StatType>();
    for (int i = 0; i < kNumStatTypes; ++i) map->emplace(kStatNames[i], static_cast<StatType>(i));
    return map;
  }();
  const auto it = types.find(name);
  if (it == types.end()) return std::nullopt;
  return it->second;
}

}  // namespace meridian
