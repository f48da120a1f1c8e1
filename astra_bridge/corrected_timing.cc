#include "astra_bridge/corrected_timing.h"

#include "absl/container/flat_hash_map.h"
#include "astra_bridge/shared_correction.h"
#include "xla_profiler/util/status_macros.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;

// Times alone, of one edge or of several together.
struct AloneTime {
  double engine_ns = 0;
  double corrected_ns = 0;
};

AloneTime AloneTimeOf(const Corrections& corrections, const CommEdge& edge, double engine_seconds) {
  // What moves nothing needs no overhead.
  if (!UsesNetwork(edge)) return {};
  const double engine_ns = engine_seconds * kNsPerSecond;
  return {engine_ns, corrections.CorrectedNs(edge.kind, edge.bytes, engine_ns)};
}

}  // namespace

absl::StatusOr<EdgeEstimate> CorrectedTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(EdgeEstimate estimate, timing_->EstimateEdge(edge));
  estimate.seconds = AloneTimeOf(corrections_, edge, estimate.seconds).corrected_ns / kNsPerSecond;
  return estimate;
}

absl::StatusOr<BatchEstimate> CorrectedTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  ASSIGN_OR_RETURN(BatchEstimate batch, timing_->EstimateBatch(edges));
  const std::vector<double> stretches = Stretches(edges, batch);
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!UsesNetwork(edges[i])) continue;
    double& alone_seconds = batch.isolated[i].seconds;
    SharedTransfer transfer;
    transfer.kind = edges[i].kind;
    transfer.bytes = edges[i].bytes;
    transfer.alone_ns = alone_seconds * kNsPerSecond;
    transfer.shared_ns = batch.seconds[i] * kNsPerSecond;
    transfer.stretch = stretches[i];
    batch.seconds[i] = CorrectedSharedNs(corrections_, transfer) / kNsPerSecond;
    alone_seconds = AloneTimeOf(corrections_, edges[i], alone_seconds).corrected_ns / kNsPerSecond;
  }
  SummariseBatch(&batch);
  return batch;
}

std::vector<double> CorrectedTiming::Stretches(absl::Span<const CommEdge> edges,
                                               const BatchEstimate& batch) const {
  const auto network_of = [&](size_t edge) {
    return batch.networks.empty() ? 0 : batch.networks[edge];
  };
  std::vector<AloneTime> times;
  absl::flat_hash_map<int32_t, AloneTime> sums;
  for (size_t i = 0; i < edges.size(); ++i) {
    times.push_back(AloneTimeOf(corrections_, edges[i], batch.isolated[i].seconds));
    AloneTime& sum = sums[network_of(i)];
    sum.engine_ns += times[i].engine_ns;
    sum.corrected_ns += times[i].corrected_ns;
  }
  std::vector<double> stretches;
  for (size_t i = 0; i < edges.size(); ++i) {
    const AloneTime& sum = sums[network_of(i)];
    stretches.push_back(
        StretchOf(sum.engine_ns - times[i].engine_ns, sum.corrected_ns - times[i].corrected_ns));
  }
  return stretches;
}

}  // namespace meridian
