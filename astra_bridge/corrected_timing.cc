#include "astra_bridge/corrected_timing.h"

#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;

}  // namespace

absl::StatusOr<EdgeEstimate> CorrectedTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(EdgeEstimate estimate, timing_->EstimateEdge(edge));
  estimate.seconds = Corrected(edge, estimate.seconds);
  return estimate;
}

absl::StatusOr<BatchEstimate> CorrectedTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  ASSIGN_OR_RETURN(BatchEstimate batch, timing_->EstimateBatch(edges));
  for (size_t i = 0; i < edges.size(); ++i) {
    batch.seconds[i] = Corrected(edges[i], batch.seconds[i]);
    batch.isolated[i].seconds = Corrected(edges[i], batch.isolated[i].seconds);
  }
  SummariseBatch(&batch);
  return batch;
}

double CorrectedTiming::Corrected(const CommEdge& edge, double seconds) const {
  if (!UsesNetwork(edge)) return seconds;
  return corrections_.CorrectedNs(edge.kind, edge.bytes, seconds * kNsPerSecond) / kNsPerSecond;
}

}  // namespace meridian
