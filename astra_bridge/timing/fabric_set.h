// The networks of a job by topology key, as edges name them.
#ifndef ASTRA_BRIDGE_TIMING_FABRIC_SET_H_
#define ASTRA_BRIDGE_TIMING_FABRIC_SET_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// The key of edges that name none.
inline constexpr absl::string_view kDefaultTopologyKey = "default";

class FabricSet {
 public:
  // One fabric for all edges, whatever their key.
  static FabricSet ForAllEdges(Fabric fabric);

  // At least one.
  explicit FabricSet(std::map<std::string, Fabric> by_key);

  // Returns the fabric of the key, valid as long as this is. InvalidArgument that lists the keys
  // when there is none. Edges without a key use the one fabric, or that of kDefaultTopologyKey.
  absl::StatusOr<const Fabric*> Find(absl::string_view topology_key) const;

 private:
  FabricSet() = default;

  bool for_all_edges_ = false;
  std::map<std::string, Fabric> by_key_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FABRIC_SET_H_
