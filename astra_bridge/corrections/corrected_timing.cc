#include "astra_bridge/corrections/corrected_timing.h"

#include <algorithm>
#include <cstddef>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {

TransferTraits TraitsOf(const CommEdge& edge) {
  return {edge.kind, edge.bytes, static_cast<double>(std::max<size_t>(edge.participants.size(), 1)),
          edge.kind == CollectiveKind::kPointToPoint && edge.participants.size() == 2};
}

absl::StatusOr<EdgeEstimate> CorrectedTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(EdgeEstimate estimate, timing_->EstimateEdge(edge));
  // What moves nothing takes no time.
  estimate.seconds =
      UsesNetwork(edge)
          ? corrections_.CorrectedNs(TraitsOf(edge), estimate.seconds * kNsPerSecond) / kNsPerSecond
          : 0;
  return estimate;
}

}  // namespace meridian
