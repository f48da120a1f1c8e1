// SPDX-License-Identifier: Apache-2.0
// Times comm edges with a user's AstraSim, one process per edge.
#ifndef ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_
#define ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "astra_bridge/cache/timing_cache.h"
#include "astra_bridge/sidecar/astra_binary.h"
#include "astra_bridge/sidecar/astra_simulator.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/fabric_timing.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class AstraSimTiming : public FabricTiming {
 public:
  AstraSimTiming(FileSystem& file_system, std::shared_ptr<const FabricSet> fabrics,
                 const AstraBinary& binary, AstraSimulatorOptions options,
                 std::shared_ptr<TimingCache> cache);

 protected:
  absl::StatusOr<double> AloneNs(const Fabric& fabric, const CommEdge& edge) override;

 private:
  FileSystem& file_system_;
  const AstraSimulatorOptions options_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_ASTRA_SIM_TIMING_H_
