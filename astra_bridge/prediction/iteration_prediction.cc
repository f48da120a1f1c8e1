#include "astra_bridge/prediction/iteration_prediction.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/prediction/network_replay.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// About 146 years.
constexpr double kMaxEdgeNs = 4.6e18;

absl::StatusOr<std::vector<int64_t>> ToNs(const std::vector<CommEdge>& edges,
                                          absl::Span<const EdgeEstimate> isolated) {
  std::vector<int64_t> edge_ns;
  edge_ns.reserve(isolated.size());
  for (size_t edge = 0; edge < isolated.size(); ++edge) {
    const double ns = isolated[edge].seconds * kNsPerSecond;
    if (!(ns >= 0 && ns < kMaxEdgeNs)) {
      return absl::OutOfRangeError(absl::StrCat("edge ", Printable(edges[edge].id), " would take ",
                                                isolated[edge].seconds,
                                                " s; check bandwidth and latency of the network"));
    }
    edge_ns.push_back(std::llround(ns));
  }
  return edge_ns;
}

}  // namespace

absl::StatusOr<ScaledTransfers> ShareNetworks(const TimingSetup& setup,
                                              absl::Span<const CommEdge> edges,
                                              absl::Span<const EdgeEstimate> isolated) {
  const SharedTransfers transfers(edges, *setup.fabrics, setup.congestion,
                                  setup.overhead_ns.value_or(0));
  std::vector<EdgeScale> scales(edges.size());
  if (setup.overhead_ns.has_value()) {
    std::vector<double> alone_ns;
    for (const EdgeEstimate& edge : isolated) alone_ns.push_back(edge.seconds * kNsPerSecond);
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
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &result.edges.edges));
  ASSIGN_OR_RETURN(result.isolated,
                   EstimateEdges(*setup.timing, edges, options.threads, [&](uint64_t timed) {
                     if (options.progress) options.progress(timed);
                   }));
  ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ns, ToNs(edges, result.isolated));
  ASSIGN_OR_RETURN(result.times,
                   ReplayEdges(graph, match, result.edges, edge_ns, options.resources));
  result.isolated_makespan_ns = result.times.replay.makespan_ns;
  if (options.mode == TimingMode::kIsolated) {
    for (const EdgeEstimate& edge : result.isolated) result.seconds.push_back(edge.seconds);
    return result;
  }
  ASSIGN_OR_RETURN(const ScaledTransfers shared, ShareNetworks(setup, edges, result.isolated));
  ASSIGN_OR_RETURN(result.times,
                   ReplayOnNetwork(graph, match, result.edges, shared.transfers, shared.scales,
                                   options.resources, std::move(result.times.replay)));
  for (const EdgeInterval& interval : result.times.intervals) {
    result.seconds.push_back(static_cast<double>(interval.duration_ns()) / kNsPerSecond);
  }
  return result;
}

}  // namespace meridian
