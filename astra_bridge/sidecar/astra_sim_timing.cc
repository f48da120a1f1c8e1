#include "astra_bridge/sidecar/astra_sim_timing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "astra_bridge/timing/edge_workload.h"
#include "astra_bridge/timing/fabric.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// How long the node lasts with which every rank begins.
constexpr int64_t kStartNs = 1;

}  // namespace

AstraSimTiming::AstraSimTiming(FileSystem& file_system, std::shared_ptr<const FabricSet> fabrics,
                               AstraBinary binary, AstraSimulatorOptions options,
                               std::shared_ptr<TimingCache> cache)
    : FabricTiming(std::move(fabrics), std::move(cache)),
      file_system_(file_system),
      binary_(std::move(binary)),
      options_(std::move(options)) {}

TimingEngine AstraSimTiming::engine() const {
  return {absl::StrCat("AstraSim analytical, ", CongestionName(binary_.congestion)),
          binary_.version};
}

absl::StatusOr<double> AstraSimTiming::IsolatedNs(const Fabric& fabric, const CommEdge& edge) {
  ASSIGN_OR_RETURN(const int64_t ns, MakespanNs(fabric, absl::MakeSpan(&edge, 1)));
  return static_cast<double>(ns);
}

absl::StatusOr<std::vector<double>> AstraSimTiming::TogetherNs(
    const Fabric& fabric, absl::Span<const CommEdge> edges, absl::Span<const double> isolated_ns) {
  ASSIGN_OR_RETURN(const int64_t makespan_ns, MakespanNs(fabric, edges));
  const double longest_ns = *std::max_element(isolated_ns.begin(), isolated_ns.end());
  const double inflation = longest_ns > 0 ? static_cast<double>(makespan_ns) / longest_ns : 1;
  std::vector<double> ns;
  for (double isolated : isolated_ns) ns.push_back(isolated * inflation);
  return ns;
}

absl::StatusOr<int64_t> AstraSimTiming::MakespanNs(const Fabric& fabric,
                                                   absl::Span<const CommEdge> edges) {
  ASSIGN_OR_RETURN(const EdgeWorkload edge_workload,
                   MakeEdgeWorkload(edges, fabric, {/*start_nodes=*/true}));
  ASSIGN_OR_RETURN(const AstraSimulation simulation,
                   SimulateWithAstraSim(file_system_, edge_workload.workload, fabric.network,
                                        fabric.system, options_));
  return simulation.result.makespan_ns() - kStartNs;
}

}  // namespace meridian
