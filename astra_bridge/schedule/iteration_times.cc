#include "astra_bridge/schedule/iteration_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/simulated_times.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/rank_activity.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;

constexpr char kStreams[] =
    "a stream or thread runs one node at a time, and sends wait for their receivers";
constexpr char kOneAtATime[] =
    "one computation and one communication of a rank at a time, and sends wait for their receivers";

class IterationTimer {
 public:
  IterationTimer(const IterationPrediction& prediction, const ExecutionGraph& graph,
                 const CommunicationMatch& match)
      : prediction_(prediction), graph_(graph), match_(match) {}

  // Returns when all is done if edges take that many intervals longer: 0 as predicted.
  absl::StatusOr<int64_t> MakespanNs(ReplayResources resources, double intervals,
                                     const std::function<double(const CommEdge&)>& log_factor) {
    std::vector<int64_t> edge_ns;
    for (size_t edge = 0; edge < prediction_.seconds.size(); ++edge) {
      const double off = intervals == 0 ? 0 : intervals * log_factor(prediction_.edges.edges[edge]);
      edge_ns.push_back(std::llround(
          std::min(prediction_.seconds[edge] * kNsPerSecond * std::exp(off), kMaxCorrectedNs)));
    }
    ASSIGN_OR_RETURN(const EdgeSchedule schedule,
                     ScheduleEdges(graph_, match_, prediction_.edges, edge_ns, resources));
    return schedule.replay.makespan_ns;
  }

 private:
  const IterationPrediction& prediction_;
  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
};

}  // namespace

absl::StatusOr<SimulatedTimes> TimeIteration(
    const IterationPrediction& prediction, const ExecutionGraph& graph,
    const CommunicationMatch& match, ReplayResources resources,
    const std::function<double(const CommEdge&)>& log_factor) {
  const bool has_streams = resources == ReplayResources::kPerResource;
  SimulatedTimes times;
  times.set_schedule(has_streams ? kStreams : kOneAtATime);
  const GraphReplay& replay = prediction.schedule.replay;
  const std::vector<RankActivity> simulated = ActivityAt(graph, replay.starts_ns, replay.ends_ns);
  if (!simulated.empty()) *times.mutable_simulated() = ReportActivity(simulated);
  times.mutable_simulated()->set_makespan_ns(replay.makespan_ns);
  times.set_alone_ns(prediction.isolated_makespan_ns);
  IterationTimer timer(prediction, graph, match);
  if (has_streams) {
    ASSIGN_OR_RETURN(const int64_t one_at_a_time_ns,
                     timer.MakespanNs(ReplayResources::kSimulator, 0, log_factor));
    times.set_one_at_a_time_ns(one_at_a_time_ns);
  }
  if (log_factor) {
    ASSIGN_OR_RETURN(const int64_t low_ns, timer.MakespanNs(resources, -1, log_factor));
    ASSIGN_OR_RETURN(const int64_t high_ns, timer.MakespanNs(resources, 1, log_factor));
    times.set_low_ns(low_ns);
    times.set_high_ns(high_ns);
  }
  const std::vector<RankActivity> measured = MeasuredActivity(graph);
  if (measured.empty()) return times;
  ReplayOptions as_measured;
  as_measured.resources = resources;
  as_measured.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replayed, ReplayGraph(graph, match, as_measured));
  AddMeasured(ReportActivity(measured).makespan_ns(),
              ActivityAt(graph, replayed.starts_ns, replayed.ends_ns), &times);
  times.set_replayed_ns(replayed.makespan_ns);
  return times;
}

}  // namespace meridian
