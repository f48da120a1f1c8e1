#include "astra_bridge/corrections/corrected_timing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {

TransferTraits TraitsOf(const CommEdge& edge) {
  return {edge.kind, edge.bytes, static_cast<double>(std::max<size_t>(edge.participants.size(), 1)),
          edge.kind == CollectiveKind::kPointToPoint && edge.participants.size() == 2};
}

NetworkTiming CorrectedTiming(NetworkTiming timing, Corrections corrections) {
  return [timing = std::move(timing),
          corrections = std::move(corrections)](const CommEdge& edge) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double seconds, timing(edge));
    // What moves nothing takes no time.
    if (!UsesNetwork(edge)) return 0;
    return corrections.CorrectedNs(TraitsOf(edge), seconds * kNsPerSecond) / kNsPerSecond;
  };
}

}  // namespace meridian
