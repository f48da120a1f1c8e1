#include "astra_bridge/sidecar/astra_sim_timing.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/timing/edge_workload.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// How long the node lasts with which every rank begins.
constexpr int64_t kStartNs = 1;

}  // namespace

AstraSimTiming::AstraSimTiming(FileSystem& file_system, std::shared_ptr<const FabricSet> fabrics,
                               const AstraBinary& binary, AstraSimulatorOptions options,
                               std::shared_ptr<TimingCache> cache)
    : FabricTiming({absl::StrCat("AstraSim analytical, ", CongestionName(binary.congestion)),
                    binary.version},
                   BatchRule::kMakespanInflation, std::move(fabrics), std::move(cache)),
      file_system_(file_system),
      options_(std::move(options)) {}

FabricTiming::Times AstraSimTiming::TogetherNs(const Fabric& fabric,
                                               absl::Span<const CommEdge> edges,
                                               absl::Span<const double> isolated_ns) {
  ASSIGN_OR_RETURN(const EdgeWorkload edge_workload,
                   MakeEdgeWorkload(edges, fabric, /*start_nodes=*/true));
  ASSIGN_OR_RETURN(const SimulationResult result,
                   SimulateWithAstraSim(file_system_, edge_workload.workload, fabric.network,
                                        fabric.system, options_));
  const double makespan_ns = static_cast<double>(result.makespan_ns() - kStartNs);
  if (isolated_ns.empty()) return std::vector<double>{makespan_ns};
  const double longest_ns = *std::max_element(isolated_ns.begin(), isolated_ns.end());
  const double inflation = longest_ns > 0 ? makespan_ns / longest_ns : 1;
  std::vector<double> ns;
  for (double isolated : isolated_ns) ns.push_back(isolated * inflation);
  return ns;
}

}  // namespace meridian
