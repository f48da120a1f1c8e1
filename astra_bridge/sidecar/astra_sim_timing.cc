#include "astra_bridge/sidecar/astra_sim_timing.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/timing/edge_workload.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

AstraSimTiming::AstraSimTiming(FileSystem& file_system, std::shared_ptr<const FabricSet> fabrics,
                               const AstraBinary& binary, AstraSimulatorOptions options,
                               std::shared_ptr<TimingCache> cache)
    : FabricTiming({absl::StrCat("AstraSim analytical, ", CongestionName(binary.congestion)),
                    binary.version},
                   std::move(fabrics), std::move(cache)),
      file_system_(file_system),
      options_(std::move(options)) {}

absl::StatusOr<double> AstraSimTiming::AloneNs(const Fabric& fabric, const CommEdge& edge) {
  const EdgeSchedule at_once{{std::vector<int64_t>(edge.participants.size(), 0)}, {}};
  ASSIGN_OR_RETURN(
      const EdgeWorkload edge_workload,
      MakeEdgeWorkload({&edge, 1}, fabric, at_once, /*overhead_ns=*/0, /*start_nodes=*/true));
  ASSIGN_OR_RETURN(const SimulationResult result,
                   SimulateWithAstraSim(file_system_, edge_workload.workload, fabric.network,
                                        fabric.system, options_));
  // The node with which every rank begins.
  constexpr int64_t kStartNs = 1;
  return static_cast<double>(result.makespan_ns() - kStartNs);
}

}  // namespace meridian
