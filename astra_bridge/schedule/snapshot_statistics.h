// What the snapshots of a schedule cost as a whole, and which of them cost most.
#ifndef ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_STATISTICS_H_
#define ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/schedule/snapshot_collector.h"
#include "astra_bridge/schedule/snapshot_timer.h"

namespace meridian {

struct SnapshotInflation {
  // How many have several edges.
  int64_t contended = 0;
  // The makespan over the longest isolated time, and over the sum of all: means over snapshots,
  // each weighed by how long it lasts. 1 without snapshots.
  double over_longest = 1;
  double over_sum = 1;
  double max_over_longest = 1;
};

// `batches` is what the timer returned for the snapshots.
SnapshotInflation SummariseInflation(const SnapshotTimer& timer,
                                     absl::Span<const Snapshot> snapshots,
                                     absl::Span<const BatchIndex> batches);

// The snapshots that are one batch.
struct BatchUse {
  BatchIndex batch = 0;
  // Position of the first.
  size_t first_snapshot = 0;
  int64_t occurrences = 0;
  // How long they last in all, at most what an int64 holds.
  int64_t total_ns = 0;
};

// Returns the batches of several edges with the longest makespans, at most `count`, the longest
// first; of equal ones the one that was timed first.
std::vector<BatchUse> SlowestBatches(const SnapshotTimer& timer,
                                     absl::Span<const Snapshot> snapshots,
                                     absl::Span<const BatchIndex> batches, size_t count);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_STATISTICS_H_
