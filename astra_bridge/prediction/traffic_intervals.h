// SPDX-License-Identifier: Apache-2.0
// What is under way at once. A traffic interval is a half-open interval in which the set of active
// comm edges is constant; every start and end of an edge is a change point.
//
//   edge a   |---------------|
//   edge b        |----------------|
//            |{a} |  {a, b}  | {b} |      three intervals
#ifndef ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVALS_H_
#define ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVALS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/prediction/workload_edges.h"

namespace meridian {

struct TrafficInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // The active edges, ascending; at least one.
  std::vector<CommEdgeIndex> members;

  int64_t duration_ns() const { return end_ns - start_ns; }
};

// Returns all intervals in the order of time. Intervals may come from a schedule or from a
// measurement; edges with an empty one are in none. OutOfRange, with what to do, when the intervals
// would have more than 50 million members in all.
absl::StatusOr<std::vector<TrafficInterval>> CollectTrafficIntervals(
    absl::Span<const EdgeInterval> intervals);

// Returns for each edge a fingerprint of the set of edges whose intervals overlap its own, which is
// enough to tell whether a new schedule has other intervals than the one before; 0 for edges with
// an empty interval. O(n log n), however many overlap.
std::vector<uint64_t> ConcurrencyFingerprints(absl::Span<const EdgeInterval> intervals);

// Returns the share of edges whose fingerprint differs, of those that have one; 0 when none has.
double ChangedShare(absl::Span<const uint64_t> before, absl::Span<const uint64_t> after);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVALS_H_
