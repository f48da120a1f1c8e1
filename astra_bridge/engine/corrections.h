// What calibration adds to the engine's times: real libraries need more than one bandwidth and one
// latency can tell.
//
//   {"all-reduce": [{"up_to_bytes": 8192, "overhead_ns": 41000, "efficiency": 0.71},
//                   {"up_to_bytes": null, "overhead_ns": 52000, "efficiency": 0.93}],
//    "all-gather": [...]}
//
// A collective that is alone on the network lasts overhead + engine time / efficiency, by the first
// segment of its kind that its bytes fit in; one without a segment lasts what the engine says.
#ifndef ASTRA_BRIDGE_ENGINE_CORRECTIONS_H_
#define ASTRA_BRIDGE_ENGINE_CORRECTIONS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/collective_op.h"

namespace meridian {

struct CorrectionSegment {
  // Inclusive; of the bytes that one rank puts in.
  int64_t up_to_bytes = std::numeric_limits<int64_t>::max();
  double overhead_ns = 0;
  // Positive.
  double efficiency = 1;
};

struct Corrections {
  // By CollectiveOp, each ascending.
  std::array<std::vector<CorrectionSegment>, kSimulatedCollectiveOps> segments;

  // Returns the segment for a collective of so many bytes, or nullptr.
  const CorrectionSegment* Find(CollectiveOp op, int64_t bytes) const;

  // Returns how long a collective lasts that the engine gives engine_ns, rounded to the nearest ns.
  int64_t CorrectedNs(CollectiveOp op, int64_t bytes, int64_t engine_ns) const;
};

// Errors name the source and the key.
absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_CORRECTIONS_H_
