#include "forecast/testing/made_job.h"

#include <vector>

#include "xla_profiler/base/picoseconds.h"

namespace meridian {

PathGraph MakeJobGraph(const MadeJob& job) {
  PathGraph graph;
  const NameId compute_name = graph.names.Intern("matmul");
  const NameId transfer_name = graph.names.Intern("ncclAllReduce");
  const int64_t compute_ps = job.compute_us * kPsPerUs;
  const int64_t transfer_ps = job.transfer_us * kPsPerUs;
  const int64_t step_ps = compute_ps + transfer_ps;
  graph.window_end_ps = job.steps * step_ps;
  const auto add_instant = [&](int64_t time_ps, GraphEventId event, bool is_start) {
    graph.instants.push_back({time_ps, event, is_start});
    return static_cast<InstantId>(graph.instants.size() - 1);
  };
  const InstantId begin = add_instant(0, kNoEvent, true);
  GraphTransfer moved{job.kind, job.bytes, {}};
  for (int32_t rank = 0; rank < job.ranks; ++rank) {
    graph.lanes.push_back({rank, TrackKind::kDevice, "0", "7"});
    moved.ranks.push_back(rank);
  }
  std::vector<InstantId> last(job.ranks, begin);
  for (int64_t step = 0; step < job.steps; ++step) {
    const int64_t start_ps = step * step_ps, met_ps = start_ps + compute_ps;
    std::vector<InstantId> arrivals, ends;
    GraphEventId event = 0;
    for (int32_t rank = 0; rank < job.ranks; ++rank) {
      const auto add_event = [&](NameId name, int64_t at_ps, int64_t lasts_ps) {
        graph.events.push_back({name, static_cast<LaneId>(rank), at_ps, lasts_ps,
                                EventCategory::kKernel, static_cast<uint32_t>(2 * step), step});
        return static_cast<GraphEventId>(graph.events.size() - 1);
      };
      const GraphEventId compute = add_event(compute_name, start_ps, compute_ps);
      event = add_event(transfer_name, met_ps, transfer_ps);
      const InstantId computes = add_instant(start_ps, compute, true);
      const InstantId computed = add_instant(met_ps, compute, false);
      arrivals.push_back(add_instant(met_ps, event, true));
      ends.push_back(add_instant(met_ps + transfer_ps, event, false));
      graph.AddTimed(last[rank], computes, EdgeType::kKernelKernelDelay,
                     BoundBy::kKernelKernelOverhead, compute);
      graph.AddTimed(computes, computed, EdgeType::kOperator, BoundBy::kGpuCompute, compute);
      graph.AddTimed(computed, arrivals.back(), EdgeType::kKernelKernelDelay,
                     BoundBy::kKernelKernelOverhead, event);
      graph.AddUntimed(arrivals.back(), ends.back(), EdgeType::kOperator);
    }
    const InstantId meeting = add_instant(met_ps, event, true);
    for (int32_t rank = 0; rank < job.ranks; ++rank) {
      graph.AddUntimed(arrivals[rank], meeting, EdgeType::kSyncDependency);
      graph.AddTimed(meeting, ends[rank], EdgeType::kSyncDependency, BoundBy::kGpuCommunication,
                     graph.instants[ends[rank]].event);
    }
    graph.meetings.push_back({meeting, transfer_name, step, moved});
    last = ends;
  }
  const InstantId end = add_instant(graph.window_end_ps, kNoEvent, false);
  for (const InstantId of_rank : last) graph.AddUntimed(of_rank, end, EdgeType::kDependency);
  graph.end_instant = end;
  return graph;
}

}  // namespace meridian
