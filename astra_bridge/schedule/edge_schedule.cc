#include "astra_bridge/schedule/edge_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "xla_profiler/util/check.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {

absl::StatusOr<EdgeSchedule> ScheduleEdges(const ExecutionGraph& graph,
                                           const CommunicationMatch& match,
                                           const WorkloadEdges& edges,
                                           absl::Span<const int64_t> edge_ns,
                                           ReplayResources resources) {
  MERIDIAN_CHECK(edge_ns.size() == edges.edges.size());
  EdgeSchedule schedule;
  schedule.intervals.resize(edges.edges.size());
  ReplayOptions options;
  options.resources = resources;
  options.send_mode = SendMode::kEager;
  options.pricer = [&](absl::Span<const NodeIndex> members, int64_t start_ns,
                       absl::Span<int64_t> durations_ns) {
    const EdgeIndex edge = edges.edge_of_instance[match.instance_of(members[0])];
    if (edge == kNoEdge) return absl::OkStatus();
    std::fill(durations_ns.begin(), durations_ns.end(), edge_ns[edge]);
    schedule.intervals[edge] = {start_ns, start_ns + edge_ns[edge]};
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(schedule.replay, ReplayGraph(graph, match, options));
  return schedule;
}

}  // namespace meridian
