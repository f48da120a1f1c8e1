// From the times in snapshots to the time of an edge: one that spends d_k of its time in snapshot
// k, where it would take T_k from beginning to end, takes
//
//   T = sum_k d_k T_k / sum_k d_k
//
// In the schedule of isolated times the d_k add up to T_iso, and this is sum_k d_k T_k / T_iso.
#ifndef ASTRA_BRIDGE_SCHEDULE_EDGE_FOLDING_H_
#define ASTRA_BRIDGE_SCHEDULE_EDGE_FOLDING_H_

#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/schedule/snapshot_collector.h"
#include "astra_bridge/schedule/snapshot_timer.h"

namespace meridian {

// Returns the seconds of each edge; those in no snapshot take as long as alone. `batches` is what
// the timer returned for the snapshots.
std::vector<double> FoldEdgeTimes(const SnapshotTimer& timer, absl::Span<const Snapshot> snapshots,
                                  absl::Span<const BatchIndex> batches, size_t edge_count);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_EDGE_FOLDING_H_
