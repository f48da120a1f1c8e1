#include "critical_path/what_if/testing/all_reduce_job.h"

#include <algorithm>
#include <optional>

#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Instant 0 is the window's start, and each rank has four.
InstantId NodeOf(size_t rank, int number) { return static_cast<InstantId>(1 + 4 * rank + number); }

}  // namespace

PathGraph AllReduceJob(const std::vector<RankTimes>& ranks) {
  PathGraph graph;
  const NameId op_name = graph.names.Intern("op");
  const NameId all_reduce_name = graph.names.Intern("all-reduce");
  int64_t met_ps = 0;
  std::vector<int64_t> arrivals_ps;
  for (const RankTimes& times : ranks) {
    arrivals_ps.push_back((times.gap_us + times.op_us + times.launch_us) * kPsPerUs);
    met_ps = std::max(met_ps, arrivals_ps.back());
  }
  const int64_t end_ps = met_ps + kTransferUs * kPsPerUs;
  graph.window_end_ps = end_ps;
  graph.instants.push_back({0, kNoEvent, /*is_start=*/true});
  GraphEventId last_event = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto host = static_cast<LaneId>(graph.lanes.size());
    graph.lanes.push_back({static_cast<int64_t>(rank), TrackKind::kHost, "1", "main"});
    graph.lanes.push_back({static_cast<int64_t>(rank), TrackKind::kDevice, "0", "20"});
    const int64_t start_ps = ranks[rank].gap_us * kPsPerUs;
    const int64_t op_ps = ranks[rank].op_us * kPsPerUs;
    const auto op = static_cast<GraphEventId>(graph.events.size());
    graph.events.push_back({op_name, host, start_ps, op_ps, EventCategory::kCpuOp, 0});
    graph.events.push_back({all_reduce_name, host + 1, arrivals_ps[rank],
                            end_ps - arrivals_ps[rank], EventCategory::kKernel, 1});
    if (arrivals_ps[rank] == met_ps) last_event = op + 1;
    graph.instants.push_back({start_ps, op, /*is_start=*/true});
    graph.instants.push_back({start_ps + op_ps, op, /*is_start=*/false});
    graph.instants.push_back({arrivals_ps[rank], op + 1, /*is_start=*/true});
    graph.instants.push_back({end_ps, op + 1, /*is_start=*/false});
    graph.edges.push_back(
        {0, NodeOf(rank, 0), start_ps, kNoEvent, EdgeType::kDependency, BoundBy::kHostGap});
    graph.edges.push_back(
        {NodeOf(rank, 0), NodeOf(rank, 1), op_ps, op, EdgeType::kOperator, BoundBy::kCpu});
    graph.edges.push_back({NodeOf(rank, 1), NodeOf(rank, 2), ranks[rank].launch_us * kPsPerUs,
                           op + 1, EdgeType::kKernelLaunchDelay, BoundBy::kKernelLaunchOverhead});
    graph.edges.push_back(
        {NodeOf(rank, 2), NodeOf(rank, 3), 0, kNoEvent, EdgeType::kOperator, BoundBy::kNothing});
  }
  const InstantId end = NodeOf(ranks.size(), 0), meeting = NodeOf(ranks.size(), 1);
  graph.instants.push_back({end_ps, kNoEvent, /*is_start=*/false});
  graph.instants.push_back({met_ps, last_event, /*is_start=*/true});
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto all_reduce = static_cast<GraphEventId>(2 * rank + 1);
    graph.edges.push_back(
        {NodeOf(rank, 2), meeting, 0, kNoEvent, EdgeType::kSyncDependency, BoundBy::kNothing});
    graph.edges.push_back({meeting, NodeOf(rank, 3), kTransferUs * kPsPerUs, all_reduce,
                           EdgeType::kSyncDependency, BoundBy::kGpuCommunication});
    graph.edges.push_back(
        {NodeOf(rank, 3), end, 0, kNoEvent, EdgeType::kDependency, BoundBy::kNothing});
  }
  graph.meetings.push_back({meeting, all_reduce_name, std::nullopt});
  graph.end_instant = end;
  return graph;
}

}  // namespace meridian
