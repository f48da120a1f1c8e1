#include "astra_bridge/timing/network_timing.h"

#include <algorithm>

#include "xla_profiler/base/errors.h"

namespace meridian {
absl::string_view BatchRuleName(BatchRule rule) {
  switch (rule) {
    case BatchRule::kIndependent:
      return "independent";
    case BatchRule::kSimulatedTogether:
      return "simulated together";
    case BatchRule::kMakespanInflation:
      return "makespan inflation";
    case BatchRule::kSerialised:
      return "serialised";
  }
  return "";
}

void SummariseBatch(BatchEstimate* batch) {
  batch->makespan_seconds = 0;
  for (double seconds : batch->seconds) {
    batch->makespan_seconds = std::max(batch->makespan_seconds, seconds);
  }
  double longest = 0;
  for (const EdgeEstimate& edge : batch->isolated) longest = std::max(longest, edge.seconds);
  batch->inflation = longest > 0 ? batch->makespan_seconds / longest : 1;
}

bool MayFallBack(const absl::Status& failure) {
  return absl::IsAborted(failure) || absl::IsDeadlineExceeded(failure) ||
         absl::IsUnimplemented(failure);
}

absl::StatusOr<EdgeEstimate> FallbackTiming::EstimateEdge(const CommEdge& edge) {
  const absl::StatusOr<EdgeEstimate> asked = timing_->EstimateEdge(edge);
  if (asked.ok() || !MayFallBack(asked.status())) return asked;
  ASSIGN_OR_RETURN(EdgeEstimate estimate, substitute_->EstimateEdge(edge));
  estimate.fallback_reason = std::string(asked.status().message());
  return estimate;
}

absl::StatusOr<BatchEstimate> FallbackTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  const absl::StatusOr<BatchEstimate> asked = timing_->EstimateBatch(edges);
  if (asked.ok() || !MayFallBack(asked.status())) return asked;
  BatchEstimate batch;
  batch.rule = BatchRule::kSerialised;
  batch.fallback_reason = std::string(asked.status().message());
  double sum = 0, longest = 0;
  for (const CommEdge& edge : edges) {
    ASSIGN_OR_RETURN(EdgeEstimate isolated, EstimateEdge(edge));
    sum += isolated.seconds;
    longest = std::max(longest, isolated.seconds);
    batch.isolated.push_back(std::move(isolated));
  }
  const double stretch = longest > 0 ? sum / longest : 1;
  for (const EdgeEstimate& isolated : batch.isolated) {
    batch.seconds.push_back(isolated.seconds * stretch);
  }
  SummariseBatch(&batch);
  return batch;
}

}  // namespace meridian
