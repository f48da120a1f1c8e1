#include "astra_bridge/timing/fabric_set.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/check.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {

FabricSet FabricSet::ForAllEdges(Fabric fabric) {
  FabricSet set({{std::string(kDefaultTopologyKey), std::move(fabric)}});
  set.for_all_edges_ = true;
  return set;
}

FabricSet::FabricSet(std::map<std::string, Fabric> by_key) : by_key_(std::move(by_key)) {
  MERIDIAN_CHECK(!by_key_.empty());
}

absl::StatusOr<const Fabric*> FabricSet::Find(absl::string_view topology_key) const {
  if (for_all_edges_ || (topology_key.empty() && by_key_.size() == 1)) {
    return &by_key_.begin()->second;
  }
  const auto fabric =
      by_key_.find(std::string(topology_key.empty() ? kDefaultTopologyKey : topology_key));
  if (fabric != by_key_.end()) return &fabric->second;
  const std::string keys = absl::StrJoin(
      by_key_, ", ", [](std::string* out, const auto& entry) { *out += entry.first; });
  if (topology_key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no topology_key, and no topology is called ",
                                                   kDefaultTopologyKey, "; there are ", keys));
  }
  return absl::InvalidArgumentError(absl::StrCat("topology_key ", Printable(topology_key),
                                                 " names no topology; there are ", keys));
}

}  // namespace meridian
