// Has snapshots timed, each content once: snapshots whose edges are alike one by one take equally
// long, and a training run is a few of them over and over. What has to be simulated is, in
// parallel; the times do not depend on the number of threads.
#ifndef ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_TIMER_H_
#define ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_TIMER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/schedule/edge_shapes.h"
#include "astra_bridge/schedule/snapshot_collector.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

using BatchIndex = uint32_t;

// Told (done, total).
using TimingProgress = absl::FunctionRef<void(uint64_t, uint64_t)>;

class SnapshotTimer {
 public:
  // Timing and edges must outlive this; edges are on devices.
  SnapshotTimer(NetworkTiming& timing, absl::Span<const CommEdge> edges, int threads);

  // Times every edge alone, each shape once. Comes first.
  absl::Status TimeEdges(TimingProgress progress);

  // Returns for each snapshot which batch it is; those not known from an earlier call are timed.
  absl::StatusOr<std::vector<BatchIndex>> TimeSnapshots(absl::Span<const Snapshot> snapshots,
                                                        TimingProgress progress);

  const EdgeEstimate& isolated(EdgeIndex edge) const { return isolated_[shapes_.shape_of[edge]]; }
  // Seconds are in the order of BatchMembers.
  const BatchEstimate& batch(BatchIndex batch) const { return batches_[batch]; }
  size_t batch_count() const { return batches_.size(); }
  size_t shape_count() const { return shapes_.examples.size(); }

  // Returns the snapshot's edges in the order of its batch: by shape, then by number.
  std::vector<EdgeIndex> BatchMembers(const Snapshot& snapshot) const;

 private:
  using Content = std::vector<ShapeIndex>;

  absl::StatusOr<BatchEstimate> TimeBatch(const Snapshot& snapshot) const;

  NetworkTiming& timing_;
  const absl::Span<const CommEdge> edges_;
  const int threads_;
  const EdgeShapes shapes_;
  // By shape.
  std::vector<EdgeEstimate> isolated_;
  absl::flat_hash_map<Content, BatchIndex> known_;
  std::vector<BatchEstimate> batches_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_TIMER_H_
