#include "astra_bridge/schedule/edge_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/graph/graph_order.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// A trace that contradicts itself is the more telling reason for nodes to wait for ever.
absl::Status WhyNodesWait(const ExecutionGraph& graph, const absl::Status& deadlock) {
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  if (cycle.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        deadlock.message(), "; ranks must run their common communication in one order"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the dependencies of the trace form a cycle: ", DescribeCycle(graph, cycle),
                   "; chakra_inspect --check lists what is wrong with it"));
}

}  // namespace

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
    const CommEdgeIndex edge = edges.edge_of_instance[match.instance_of(members[0])];
    if (edge == kNoCommEdge) return absl::OkStatus();
    std::fill(durations_ns.begin(), durations_ns.end(), edge_ns[edge]);
    schedule.intervals[edge].start_ns = start_ns;
    return absl::OkStatus();
  };
  absl::StatusOr<GraphReplay> replay = ReplayGraph(graph, match, options);
  if (absl::IsFailedPrecondition(replay.status())) return WhyNodesWait(graph, replay.status());
  RETURN_IF_ERROR(replay.status());
  schedule.replay = *std::move(replay);
  // Only now that the replay is done it is known that the ends fit into 64 bits.
  for (size_t edge = 0; edge < edge_ns.size(); ++edge) {
    schedule.intervals[edge].end_ns = schedule.intervals[edge].start_ns + edge_ns[edge];
  }
  return schedule;
}

}  // namespace meridian
