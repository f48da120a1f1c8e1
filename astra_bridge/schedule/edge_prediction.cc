#include "astra_bridge/schedule/edge_prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "astra_bridge/edges/job_layout.h"
#include "astra_bridge/schedule/prediction_report.h"
#include "astra_bridge/schedule/prediction_report.pb.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

void AddEdge(const CommEdge& edge, const EdgeEstimate& isolated, double seconds,
             PredictionReport* report) {
  EdgePrediction* prediction = report->add_edges();
  prediction->set_id(edge.id);
  prediction->set_seconds(seconds);
  prediction->set_isolated_seconds(isolated.seconds);
  prediction->set_fallback(isolated.is_fallback());
  if (isolated.is_fallback()) AddFallback(edge.id, isolated.fallback_reason, report);
}

int64_t ToNs(double seconds) { return std::llround(seconds * 1e9); }

absl::Status PredictEachAlone(NetworkTiming& timing, const std::vector<CommEdge>& edges,
                              absl::FunctionRef<void(uint64_t)> progress,
                              PredictionReport* report) {
  double longest = 0;
  for (const CommEdge& edge : edges) {
    ASSIGN_OR_RETURN(const EdgeEstimate estimate, timing.EstimateEdge(edge));
    AddEdge(edge, estimate, estimate.seconds, report);
    longest = std::max(longest, estimate.seconds);
    progress(static_cast<uint64_t>(report->edges_size()));
  }
  report->set_iteration_ns(ToNs(longest));
  report->set_inflation(1);
  return absl::OkStatus();
}

absl::Status PredictTogether(NetworkTiming& timing, const std::vector<CommEdge>& edges,
                             PredictionReport* report) {
  ASSIGN_OR_RETURN(const BatchEstimate batch, timing.EstimateBatch(edges));
  for (size_t i = 0; i < edges.size(); ++i) {
    AddEdge(edges[i], batch.isolated[i], batch.seconds[i], report);
  }
  if (batch.is_fallback()) {
    for (EdgePrediction& edge : *report->mutable_edges()) edge.set_fallback(true);
    AddFallback("", batch.fallback_reason, report);
  }
  report->set_iteration_ns(ToNs(batch.makespan_seconds));
  report->set_inflation(batch.inflation);
  report->set_snapshots(1);
  report->set_batch_rule(std::string(BatchRuleName(batch.rule)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PredictionReport> PredictEdges(const TimingSetup& setup, CommEdgeList list,
                                              TimingMode mode,
                                              absl::FunctionRef<void(uint64_t)> progress) {
  PredictionReport report;
  AddTimingBasis(setup, mode, &report);
  report.set_duplicates_dropped(list.duplicates_dropped);
  RETURN_IF_ERROR(PlaceEdges(setup.layout, &list.edges));
  if (mode == TimingMode::kIsolated) {
    RETURN_IF_ERROR(PredictEachAlone(*setup.timing, list.edges, progress, &report));
  } else {
    RETURN_IF_ERROR(PredictTogether(*setup.timing, list.edges, &report));
  }
  AddCacheUse(setup, &report);
  return report;
}

}  // namespace meridian
