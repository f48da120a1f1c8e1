#include "astra_bridge/timing/embedded_timing.h"

#include <algorithm>
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
                   BatchRule::kSimulatedTogether, std::move(fabrics), std::move(cache)),
      congestion_(congestion) {}

FabricTiming::Times EmbeddedTiming::TogetherNs(const Fabric& fabric,
                                               absl::Span<const CommEdge> edges,
                                               absl::Span<const double> /*isolated_ns*/) {
  ASSIGN_OR_RETURN(const EdgeWorkload edge_workload, MakeEdgeWorkload(edges, fabric));
  SimulationOptions options;
  options.congestion = congestion_;
  options.comm_streams = edge_workload.comm_streams;
  options.node_times = true;
  ASSIGN_OR_RETURN(const SimulationResult result,
                   Simulate(edge_workload.workload, fabric.network, fabric.system, options));
  std::vector<double> ns(edges.size());
  for (const NodeTime& node : result.nodes) {
    double& edge_ns = ns[node.id - EdgeNodeId(0)];
    edge_ns = std::max(edge_ns, static_cast<double>(node.finish_ns));
  }
  return ns;
}

}  // namespace meridian
