#include "astra_bridge/prediction/iteration_prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/simulated_times.pb.h"
#include "astra_bridge/engine/simulation_report.h"
#include "chakra_export/graph/rank_activity.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// About 146 years.
constexpr double kMaxEdgeNs = 4.6e18;

absl::StatusOr<std::vector<int64_t>> ToNs(const std::vector<CommEdge>& edges,
                                          absl::Span<const double> isolated_seconds) {
  std::vector<int64_t> edge_ns;
  edge_ns.reserve(edges.size());
  for (size_t edge = 0; edge < edges.size(); ++edge) {
    const double ns = isolated_seconds[edge] * kNsPerSecond;
    if (!(ns >= 0 && ns < kMaxEdgeNs)) {
      return absl::OutOfRangeError(absl::StrCat("edge ", Printable(edges[edge].id), " would take ",
                                                isolated_seconds[edge],
                                                " s; check bandwidth and latency of the network"));
    }
    edge_ns.push_back(std::llround(ns));
  }
  return edge_ns;
}

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

absl::StatusOr<ScaledTransfers> ShareNetworks(const TimingSetup& setup,
                                              absl::Span<const CommEdge> edges,
                                              absl::Span<const double> isolated_seconds) {
  const SharedTransfers transfers(edges, *setup.fabrics, setup.congestion,
                                  setup.overhead_ns.value_or(0));
  std::vector<EdgeScale> scales(edges.size());
  if (setup.overhead_ns.has_value()) {
    std::vector<double> alone_ns;
    for (const double seconds : isolated_seconds) alone_ns.push_back(seconds * kNsPerSecond);
    ASSIGN_OR_RETURN(scales, transfers.FitScales(transfers.Apart(alone_ns), alone_ns));
  }
  return ScaledTransfers{transfers, std::move(scales)};
}

absl::StatusOr<IterationPrediction> PredictIteration(const TimingSetup& setup,
                                                     const ExecutionGraph& graph,
                                                     const CommunicationMatch& match,
                                                     const IterationOptions& options) {
  IterationPrediction result;
  ASSIGN_OR_RETURN(result.edges, FindWorkloadEdges(graph, match));
  const std::vector<CommEdge>& edges = result.edges.edges;
  ASSIGN_OR_RETURN(result.isolated_seconds, EstimateEdges(setup.timing, edges, [&](uint64_t timed) {
                     if (options.progress) options.progress(timed);
                   }));
  ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ns, ToNs(edges, result.isolated_seconds));
  ASSIGN_OR_RETURN(result.times,
                   ReplayEdges(graph, match, result.edges, edge_ns, options.resources));
  result.isolated_makespan_ns = result.times.replay.makespan_ns;
  if (options.mode == TimingMode::kIsolated) {
    result.seconds = result.isolated_seconds;
    return result;
  }
  ASSIGN_OR_RETURN(const ScaledTransfers shared,
                   ShareNetworks(setup, edges, result.isolated_seconds));
  ASSIGN_OR_RETURN(result.times,
                   ReplayOnNetwork(graph, match, result.edges, shared.transfers, shared.scales,
                                   options.resources, std::move(result.times.replay)));
  for (const int64_t lasts_ns : result.times.lasts_ns) {
    result.seconds.push_back(static_cast<double>(lasts_ns) / kNsPerSecond);
  }
  return result;
}

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
  if (measured_ns.has_value()) times.set_measured_ns(*measured_ns);
  return times;
}

}  // namespace meridian
