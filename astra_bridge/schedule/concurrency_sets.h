// Which edges each edge runs beside, as fingerprints: enough to tell whether a new schedule has
// other snapshots than the one before.
#ifndef ASTRA_BRIDGE_SCHEDULE_CONCURRENCY_SETS_H_
#define ASTRA_BRIDGE_SCHEDULE_CONCURRENCY_SETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/schedule/edge_schedule.h"

namespace meridian {

// Returns for each edge a number that tells the set of edges whose intervals overlap its own; 0 for
// edges with an empty interval and those that take no part. O(n log n), however many overlap.
std::vector<uint64_t> ConcurrencyFingerprints(absl::Span<const EdgeInterval> intervals,
                                              const std::vector<bool>& takes_part);

// Returns the share of edges, of those that take part, whose set differs; 0 when none takes part.
double ChangedShare(absl::Span<const uint64_t> before, absl::Span<const uint64_t> after,
                    const std::vector<bool>& takes_part);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_CONCURRENCY_SETS_H_
