#include "astra_bridge/corrections/corrected_timing.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

bool IsMessage(const CommEdge& edge) {
  return edge.kind == CollectiveKind::kPointToPoint && edge.participants.size() == 2;
}

}  // namespace

std::vector<TransferTraits> TraitsOf(absl::Span<const CommEdge> edges,
                                     absl::Span<const int32_t> networks) {
  struct Messages {
    absl::flat_hash_set<int32_t> senders, receivers, moving;
  };
  absl::flat_hash_map<int32_t, Messages> by_network;
  const auto messages_beside = [&](size_t edge) -> Messages& {
    return by_network[networks.empty() ? 0 : networks[edge]];
  };
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!IsMessage(edges[i])) continue;
    Messages& messages = messages_beside(i);
    messages.senders.insert(edges[i].participants[0]);
    messages.receivers.insert(edges[i].participants[1]);
    messages.moving.insert(edges[i].participants.begin(), edges[i].participants.end());
  }
  std::vector<TransferTraits> traits;
  for (size_t i = 0; i < edges.size(); ++i) {
    const CommEdge& edge = edges[i];
    size_t moving = edge.participants.size();
    bool is_one_way = false;
    if (IsMessage(edge)) {
      const Messages& messages = messages_beside(i);
      moving = messages.moving.size();
      is_one_way = !messages.receivers.contains(edge.participants[0]) &&
                   !messages.senders.contains(edge.participants[1]);
    }
    traits.push_back(
        {edge.kind, edge.bytes, static_cast<double>(std::max<size_t>(moving, 1)), is_one_way});
  }
  return traits;
}

double CorrectedTiming::CorrectedSeconds(const CommEdge& edge, double engine_seconds) const {
  // What moves nothing takes no time.
  if (!UsesNetwork(edge)) return 0;
  return corrections_.CorrectedNs(TraitsOf({&edge, 1})[0], engine_seconds * kNsPerSecond) /
         kNsPerSecond;
}

absl::StatusOr<EdgeEstimate> CorrectedTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(EdgeEstimate estimate, timing_->EstimateEdge(edge));
  estimate.seconds = CorrectedSeconds(edge, estimate.seconds);
  return estimate;
}

absl::StatusOr<BatchEstimate> CorrectedTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  ASSIGN_OR_RETURN(BatchEstimate batch, timing_->EstimateBatch(edges));
  const std::vector<TransferTraits> traits = TraitsOf(edges, batch.networks);
  const std::vector<double> stretches = Stretches(edges, traits, batch);
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!UsesNetwork(edges[i])) continue;
    double& alone_seconds = batch.isolated[i].seconds;
    const double shared_ns = CorrectedSharedNs(
        corrections_,
        {traits[i], alone_seconds * kNsPerSecond, batch.seconds[i] * kNsPerSecond, stretches[i]});
    batch.seconds[i] = shared_ns / kNsPerSecond;
    alone_seconds = CorrectedSeconds(edges[i], alone_seconds);
  }
  SummariseBatch(&batch);
  return batch;
}

std::vector<double> CorrectedTiming::Stretches(absl::Span<const CommEdge> edges,
                                               absl::Span<const TransferTraits> traits,
                                               const BatchEstimate& batch) const {
  const auto network_of = [&](size_t edge) {
    return batch.networks.empty() ? 0 : batch.networks[edge];
  };
  std::vector<AloneTimes> times(edges.size());
  absl::flat_hash_map<int32_t, AloneTimes> sums;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!UsesNetwork(edges[i])) continue;
    times[i] = AloneTimesOf(corrections_, traits[i], batch.isolated[i].seconds * kNsPerSecond);
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
