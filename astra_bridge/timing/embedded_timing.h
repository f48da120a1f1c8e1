// SPDX-License-Identifier: Apache-2.0
// Times comm edges with the simulator in process. An edge lasts until its last participant is done.
#ifndef ASTRA_BRIDGE_TIMING_EMBEDDED_TIMING_H_
#define ASTRA_BRIDGE_TIMING_EMBEDDED_TIMING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/fabric_timing.h"

namespace meridian {

class EmbeddedTiming : public FabricTiming {
 public:
  EmbeddedTiming(std::shared_ptr<const FabricSet> fabrics, Congestion congestion,
                 std::shared_ptr<TimingCache> cache = nullptr);

 protected:
  absl::StatusOr<double> AloneNs(const Fabric& fabric, const CommEdge& edge) override;

 private:
  const Congestion congestion_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_EMBEDDED_TIMING_H_
