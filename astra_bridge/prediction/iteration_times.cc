#include "astra_bridge/prediction/iteration_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/simulated_times.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/rank_activity.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// What ranks do until the last node is done, be it a host gap.
ActivityReport ActivityOf(const ExecutionGraph& graph, const GraphReplay& replay) {
  const std::vector<RankActivity> ranks = ActivityAt(graph, replay.starts_ns, replay.ends_ns);
  ActivityReport report;
  if (!ranks.empty()) report = ReportActivity(ranks);
  report.set_idle_ns(report.idle_ns() + replay.makespan_ns - report.makespan_ns());
  report.set_makespan_ns(replay.makespan_ns);
  return report;
}

}  // namespace

absl::StatusOr<SimulatedTimes> TimeIteration(
    const IterationPrediction& prediction, const ExecutionGraph& graph,
    const CommunicationMatch& match, ReplayResources resources,
    const std::function<double(const CommEdge&)>& log_factor) {
  SimulatedTimes times;
  *times.mutable_simulated() = ActivityOf(graph, prediction.times.replay);
  // Returns when all is done if edges take that many intervals longer.
  const auto makespan_ns = [&](double intervals) -> absl::StatusOr<int64_t> {
    std::vector<int64_t> edge_ns;
    for (size_t edge = 0; edge < prediction.seconds.size(); ++edge) {
      const double off = intervals * log_factor(prediction.edges.edges[edge]);
      edge_ns.push_back(std::llround(
          std::min(prediction.seconds[edge] * kNsPerSecond * std::exp(off), kMaxCorrectedNs)));
    }
    ASSIGN_OR_RETURN(const EdgeTimes edge_times,
                     ReplayEdges(graph, match, prediction.edges, edge_ns, resources));
    return edge_times.replay.makespan_ns;
  };
  if (log_factor) {
    ASSIGN_OR_RETURN(const int64_t low_ns, makespan_ns(-1));
    ASSIGN_OR_RETURN(const int64_t high_ns, makespan_ns(1));
    times.set_low_ns(low_ns);
    times.set_high_ns(high_ns);
  }
  const std::optional<int64_t> measured_ns = MeasuredSpanNs(graph);
  if (!measured_ns.has_value()) return times;
  times.set_measured_ns(*measured_ns);
  ReplayOptions as_measured;
  as_measured.resources = resources;
  as_measured.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replayed, ReplayGraph(graph, match, as_measured));
  *times.mutable_replayed() = ActivityOf(graph, replayed);
  return times;
}

}  // namespace meridian
