#include "astra_bridge/prediction/network_replay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "astra_bridge/engine/simulation.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Returns when the replay issues the nodes of each edge, and when these end.
EdgeSchedule ScheduleOf(const ExecutionGraph& graph, const CommunicationMatch& match,
                        const WorkloadEdges& edges, const GraphReplay& replay) {
  EdgeSchedule schedule;
  schedule.begins_ns.resize(edges.edges.size());
  schedule.ends_ns.resize(edges.edges.size());
  for (size_t instance = 0; instance < match.instance_count(); ++instance) {
    const CommEdgeIndex number = edges.edge_of_instance[instance];
    if (number == kNoCommEdge) continue;
    const absl::Span<const NodeIndex> members = match.members(instance);
    std::map<int64_t, int64_t> by_rank;
    for (const NodeIndex node : members) {
      by_rank[graph.rank(node)] = replay.starts_ns[node];
      schedule.ends_ns[number] = std::max(schedule.ends_ns[number], replay.ends_ns[node]);
    }
    const Communication& moved = *graph.communication(members[0]);
    std::vector<int64_t>& begins_ns = schedule.begins_ns[number];
    if (edges.edges[number].kind == CollectiveKind::kPointToPoint) {
      begins_ns = {by_rank[moved.source == kNoRank ? graph.rank(members[0]) : moved.source],
                   by_rank[moved.target]};
      continue;
    }
    // Participants are in the order of the group.
    for (const int64_t rank : graph.groups()[moved.group].ranks) begins_ns.push_back(by_rank[rank]);
  }
  return schedule;
}

}  // namespace

absl::StatusOr<EdgeTimes> ReplayOnNetwork(const ExecutionGraph& graph,
                                          const CommunicationMatch& match,
                                          const WorkloadEdges& edges,
                                          const SharedTransfers& transfers,
                                          absl::Span<const EdgeScale> scales,
                                          ReplayResources resources, GraphReplay begin) {
  EdgeTimes times;
  times.replay = std::move(begin);
  std::vector<int64_t> edge_ns(edges.edges.size(), 0);
  for (int replays = 0; replays < kMaxNetworkReplays; ++replays) {
    const int64_t before_ns = times.replay.makespan_ns;
    ASSIGN_OR_RETURN(const std::vector<double> lasts_ns,
                     transfers.LastsNs(ScheduleOf(graph, match, edges, times.replay), scales));
    for (size_t edge = 0; edge < edge_ns.size(); ++edge) {
      edge_ns[edge] = std::llround(std::min(lasts_ns[edge], static_cast<double>(kMaxDurationNs)));
    }
    ASSIGN_OR_RETURN(times, ReplayEdges(graph, match, edges, edge_ns, resources));
    const double now_ns = static_cast<double>(times.replay.makespan_ns);
    if (std::abs(now_ns - static_cast<double>(before_ns)) <= kSettledChange * now_ns) break;
  }
  return times;
}

}  // namespace meridian
