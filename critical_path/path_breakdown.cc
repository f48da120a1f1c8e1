#include "critical_path/path_breakdown.h"

#include <cstddef>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace meridian {

PathBreakdown BreakDown(const PathGraph& graph, const CriticalPath& path) {
  PathBreakdown breakdown;
  absl::flat_hash_map<std::tuple<GraphEventId, EdgeType, BoundBy>, size_t> shares;
  for (EdgeId id : path.edges) {
    const GraphEdge& edge = graph.edges[id];
    breakdown.time_ps[static_cast<int>(edge.bound_by)] += edge.weight_ps;
    const auto [it, is_new] = shares.try_emplace(
        std::make_tuple(edge.event, edge.type, edge.bound_by), breakdown.shares.size());
    if (is_new) breakdown.shares.push_back({edge.event, edge.type, edge.bound_by, 0, 0});
    EventShare& share = breakdown.shares[it->second];
    share.time_ps += edge.weight_ps;
    ++share.count;
  }
  return breakdown;
}

}  // namespace meridian
