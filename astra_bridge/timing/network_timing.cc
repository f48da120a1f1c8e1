#include "astra_bridge/timing/network_timing.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/timing/edge_workload.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

absl::Status CheckDevices(const CommEdge& edge, const NetworkConfig& network) {
  for (int32_t device : edge.participants) {
    if (device >= 0 && device < network.npus()) continue;
    return InvalidArgument("device ", device, " takes part, but ", network.source, " has ",
                           network.npus(), " NPUs; give a network that is large enough");
  }
  return absl::OkStatus();
}

absl::StatusOr<double> SimulateAlone(const Fabric& fabric, const CommEdge& edge,
                                     Congestion congestion) {
  const EdgeSchedule at_once{{std::vector<int64_t>(edge.participants.size(), 0)}, {}};
  ASSIGN_OR_RETURN(const EdgeWorkload edge_workload, MakeEdgeWorkload({&edge, 1}, fabric, at_once));
  SimulationOptions options;
  options.congestion = congestion;
  ASSIGN_OR_RETURN(const SimulationResult result,
                   Simulate(edge_workload.workload, fabric.network, fabric.system, options));
  return static_cast<double>(result.makespan_ns());
}

absl::StatusOr<double> AloneNs(const FabricSet& fabrics, const CommEdge& edge,
                               Congestion congestion, TimingCache* cache) {
  ASSIGN_OR_RETURN(const Fabric* fabric, fabrics.Find(edge.topology_key));
  RETURN_IF_ERROR(CheckDevices(edge, fabric->network));
  if (!UsesNetwork(edge)) return 0;
  if (cache == nullptr) return SimulateAlone(*fabric, edge, congestion);
  const std::string key = absl::StrCat("embedded, ", CongestionName(congestion), "\nfabric ",
                                       HashDigits(fabric->content_hash), "\n", CanonicalText(edge));
  if (const std::optional<double> known_ns = cache->Find(key)) return *known_ns;
  ASSIGN_OR_RETURN(const double ns, SimulateAlone(*fabric, edge, congestion));
  RETURN_IF_ERROR(cache->Store(key, ns));
  return ns;
}

}  // namespace

NetworkTiming EmbeddedTiming(std::shared_ptr<const FabricSet> fabrics, Congestion congestion,
                             std::shared_ptr<TimingCache> cache) {
  return [fabrics = std::move(fabrics), congestion,
          cache = std::move(cache)](const CommEdge& edge) -> absl::StatusOr<double> {
    const absl::StatusOr<double> ns = AloneNs(*fabrics, edge, congestion, cache.get());
    if (ns.ok()) return *ns / kNsPerSecond;
    return Annotate(ns.status(), absl::StrCat("edge ", Printable(edge.id)));
  };
}

absl::StatusOr<std::vector<double>> EstimateEdges(const NetworkTiming& timing,
                                                  absl::Span<const CommEdge> edges,
                                                  absl::FunctionRef<void(uint64_t)> progress) {
  absl::flat_hash_map<std::string, double> timed;
  std::vector<double> estimates;
  estimates.reserve(edges.size());
  for (const CommEdge& edge : edges) {
    const auto [known, is_new] =
        timed.try_emplace(absl::StrCat(edge.topology_key, "\n", CanonicalText(edge)), 0);
    if (is_new) {
      ASSIGN_OR_RETURN(known->second, timing(edge));
      progress(timed.size());
    }
    estimates.push_back(known->second);
  }
  return estimates;
}

TransferTraits TraitsOf(const CommEdge& edge) {
  return {edge.kind, edge.bytes, static_cast<double>(std::max<size_t>(edge.participants.size(), 1)),
          edge.kind == CollectiveKind::kPointToPoint && edge.participants.size() == 2};
}

NetworkTiming CorrectedTiming(NetworkTiming timing, Corrections corrections) {
  return [timing = std::move(timing),
          corrections = std::move(corrections)](const CommEdge& edge) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, timing(edge));
    // What moves nothing takes no time.
    if (!UsesNetwork(edge)) return 0;
    return corrections.CorrectedNs(TraitsOf(edge), seconds * kNsPerSecond) / kNsPerSecond;
  };
}

}  // namespace meridian
