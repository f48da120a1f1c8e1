#include "astra_bridge/timing/embedded_timing.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/timing/edge_workload.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// To be raised when the engine's times change.
constexpr char kVersion[] = "1";

}  // namespace

EmbeddedTiming::EmbeddedTiming(std::shared_ptr<const FabricSet> fabrics, Congestion congestion,
                               std::shared_ptr<TimingCache> cache)
    : FabricTiming({absl::StrCat("embedded, ", CongestionName(congestion)), kVersion},
                   std::move(fabrics), std::move(cache)),
      congestion_(congestion) {}

absl::StatusOr<double> EmbeddedTiming::AloneNs(const Fabric& fabric, const CommEdge& edge) {
  const EdgeSchedule at_once{{std::vector<int64_t>(edge.participants.size(), 0)}, {}};
  ASSIGN_OR_RETURN(const EdgeWorkload edge_workload, MakeEdgeWorkload({&edge, 1}, fabric, at_once));
  SimulationOptions options;
  options.congestion = congestion_;
  ASSIGN_OR_RETURN(const SimulationResult result,
                   Simulate(edge_workload.workload, fabric.network, fabric.system, options));
  return static_cast<double>(result.makespan_ns());
}

}  // namespace meridian
