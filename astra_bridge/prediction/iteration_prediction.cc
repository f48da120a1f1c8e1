#include "astra_bridge/prediction/iteration_prediction.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/job_layout.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// About 146 years.
constexpr double kMaxEdgeNs = 4.6e18;
// Traffic intervals are collected anew when a larger share of the edges runs beside others than before.
constexpr double kMaxChangedShare = 0.05;
constexpr int kMaxExtractions = 2;

absl::StatusOr<std::vector<int64_t>> ToNs(const std::vector<CommEdge>& edges,
                                          absl::Span<const double> seconds) {
  std::vector<int64_t> edge_ns;
  edge_ns.reserve(seconds.size());
  for (size_t edge = 0; edge < seconds.size(); ++edge) {
    const double ns = seconds[edge] * kNsPerSecond;
    if (!(ns >= 0 && ns < kMaxEdgeNs)) {
      return absl::OutOfRangeError(absl::StrCat("edge ", Printable(edges[edge].id), " would take ",
                                                seconds[edge],
                                                " s; check bandwidth and latency of the network"));
    }
    edge_ns.push_back(std::llround(ns));
  }
  return edge_ns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictIteration(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    const IterationOptions& options) {
  auto result = std::make_unique<IterationPrediction>();
  const std::vector<CommEdge>& edges = result->edges.edges;
  ASSIGN_OR_RETURN(result->edges, FindWorkloadEdges(graph, match));
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &result->edges.edges));
  result->timer = std::make_unique<TrafficIntervalTimer>(*setup.timing, edges, options.threads);
  // How many edges and batches have been timed.
  uint64_t timed = 0;
  const auto progress = [&] {
    return [&options, &timed, before = timed](uint64_t done) {
      timed = before + done;
      if (options.progress) options.progress(timed);
    };
  };
  const auto replay = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ns, ToNs(edges, result->seconds));
    ASSIGN_OR_RETURN(result->times,
                     ReplayEdges(graph, match, result->edges, edge_ns, options.resources));
    return absl::OkStatus();
  };

  RETURN_IF_ERROR(result->timer->TimeEdges(progress()));
  for (CommEdgeIndex edge = 0; edge < edges.size(); ++edge) {
    result->seconds.push_back(result->timer->isolated(edge).seconds);
  }
  RETURN_IF_ERROR(replay());
  result->isolated_makespan_ns = result->times.replay.makespan_ns;
  if (options.mode == TimingMode::kIsolated) return result;

  std::vector<EdgeInterval> before;
  do {
    before = std::move(result->times.intervals);
    ASSIGN_OR_RETURN(result->traffic, CollectTrafficIntervals(before));
    ASSIGN_OR_RETURN(result->batches, result->timer->TimeIntervals(result->traffic, progress()));
    result->seconds = FoldEdgeTimes(*result->timer, result->traffic, result->batches);
    RETURN_IF_ERROR(replay());
  } while (++result->extractions < kMaxExtractions &&
           ChangedShare(ConcurrencyFingerprints(before),
                        ConcurrencyFingerprints(result->times.intervals)) > kMaxChangedShare);
  return result;
}

}  // namespace meridian
