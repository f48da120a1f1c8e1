#include "astra_bridge/corrections/corrected_timing.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;

double CorrectedSeconds(const Corrections& corrections, const CommEdge& edge,
                        double engine_seconds) {
  // What moves nothing takes no time.
  if (!UsesNetwork(edge)) return 0;
  // A message alone goes one way.
  const bool is_one_way = edge.kind == CollectiveKind::kPointToPoint;
  return corrections.CorrectedNs(edge.kind, edge.bytes, engine_seconds * kNsPerSecond, is_one_way) /
         kNsPerSecond;
}

// Returns for each edge whether it is a message that no other of the batch goes against: none is
// sent to its source or by its target.
std::vector<bool> FindOneWay(absl::Span<const CommEdge> edges) {
  absl::flat_hash_set<int32_t> senders, receivers;
  const auto is_message = [](const CommEdge& edge) {
    return edge.kind == CollectiveKind::kPointToPoint && edge.participants.size() == 2;
  };
  for (const CommEdge& edge : edges) {
    if (!is_message(edge)) continue;
    senders.insert(edge.participants[0]);
    receivers.insert(edge.participants[1]);
  }
  std::vector<bool> is_one_way;
  for (const CommEdge& edge : edges) {
    is_one_way.push_back(is_message(edge) && !receivers.contains(edge.participants[0]) &&
                         !senders.contains(edge.participants[1]));
  }
  return is_one_way;
}

}  // namespace

absl::StatusOr<EdgeEstimate> CorrectedTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(EdgeEstimate estimate, timing_->EstimateEdge(edge));
  estimate.seconds = CorrectedSeconds(corrections_, edge, estimate.seconds);
  return estimate;
}

absl::StatusOr<BatchEstimate> CorrectedTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  ASSIGN_OR_RETURN(BatchEstimate batch, timing_->EstimateBatch(edges));
  const std::vector<bool> is_one_way = FindOneWay(edges);
  const std::vector<double> stretches = Stretches(edges, is_one_way, batch);
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!UsesNetwork(edges[i])) continue;
    double& alone_seconds = batch.isolated[i].seconds;
    const double shared_ns = CorrectedSharedNs(
        corrections_, {edges[i].kind, edges[i].bytes, alone_seconds * kNsPerSecond,
                       batch.seconds[i] * kNsPerSecond, stretches[i], is_one_way[i]});
    batch.seconds[i] = shared_ns / kNsPerSecond;
    alone_seconds = CorrectedSeconds(corrections_, edges[i], alone_seconds);
  }
  SummariseBatch(&batch);
  return batch;
}

std::vector<double> CorrectedTiming::Stretches(absl::Span<const CommEdge> edges,
                                               const std::vector<bool>& is_one_way,
                                               const BatchEstimate& batch) const {
  const auto network_of = [&](size_t edge) {
    return batch.networks.empty() ? 0 : batch.networks[edge];
  };
  std::vector<AloneTimes> times(edges.size());
  absl::flat_hash_map<int32_t, AloneTimes> sums;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!UsesNetwork(edges[i])) continue;
    times[i] = AloneTimesOf(corrections_, edges[i].kind, edges[i].bytes,
                            batch.isolated[i].seconds * kNsPerSecond, is_one_way[i]);
    sums[network_of(i)] += times[i];
  }
  std::vector<double> stretches;
  for (size_t i = 0; i < edges.size(); ++i) {
    AloneTimes others = sums[network_of(i)];
    others -= times[i];
    stretches.push_back(others.Stretch());
  }
  return stretches;
}

}  // namespace meridian
