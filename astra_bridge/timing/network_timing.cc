#include "astra_bridge/timing/network_timing.h"

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel_for.h"

namespace meridian {

absl::StatusOr<std::vector<EdgeEstimate>> EstimateEdges(
    NetworkTiming& timing, absl::Span<const CommEdge> edges, int threads,
    absl::FunctionRef<void(uint64_t)> progress) {
  absl::flat_hash_map<std::string, size_t> numbers;
  // The first edge of each kind, and the kind of each edge.
  std::vector<const CommEdge*> examples;
  std::vector<size_t> kinds;
  for (const CommEdge& edge : edges) {
    const auto [number, is_new] = numbers.try_emplace(
        absl::StrCat(edge.topology_key, "\n", CanonicalText(edge)), examples.size());
    if (is_new) examples.push_back(&edge);
    kinds.push_back(number->second);
  }
  std::vector<EdgeEstimate> timed(examples.size());
  RETURN_IF_ERROR(ParallelFor(
      examples.size(), threads,
      [&](size_t kind) -> absl::Status {
        ASSIGN_OR_RETURN(timed[kind], timing.EstimateEdge(*examples[kind]));
        return absl::OkStatus();
      },
      progress));
  std::vector<EdgeEstimate> estimates;
  estimates.reserve(edges.size());
  for (const size_t kind : kinds) estimates.push_back(timed[kind]);
  return estimates;
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

}  // namespace meridian
