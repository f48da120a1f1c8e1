// SPDX-License-Identifier: Apache-2.0
// Has traffic intervals timed, each content once: intervals whose edges are alike one by one take
// equally long, and a training run is a few of them over and over. What has to be simulated is, in
// parallel; the times do not depend on the number of threads.
//
// Edges are alike when they differ in nothing but their id and the name of their group: they have
// one shape. Shapes are numbered as CanonicalOrder sorts within a topology, so that the sorted
// shapes of an interval are its identity, and the order of its batch.
#ifndef ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVAL_TIMER_H_
#define ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVAL_TIMER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Number of a batch of the timer: the traffic intervals of one content.
using BatchIndex = uint32_t;

// Told how much is done.
using TimingProgress = absl::FunctionRef<void(uint64_t)>;

class TrafficIntervalTimer {
 public:
  // The timing and the edges, which are on devices, must outlive this object.
  TrafficIntervalTimer(NetworkTiming& timing, absl::Span<const CommEdge> edges, int threads);

  // Times every edge alone, each shape once. To be called before anything else.
  absl::Status TimeEdges(TimingProgress progress);

  // Returns for each interval which batch it is; those not known from an earlier call are timed.
  absl::StatusOr<std::vector<BatchIndex>> TimeIntervals(absl::Span<const TrafficInterval> traffic,
                                                        TimingProgress progress);

  // Returns what the edge takes alone.
  const EdgeEstimate& isolated(CommEdgeIndex edge) const { return isolated_[shape_of_[edge]]; }
  // Returns the times of a batch, in the order of BatchMembers.
  const BatchEstimate& batch(BatchIndex batch) const { return batches_[batch]; }
  size_t batch_count() const { return batches_.size(); }
  size_t edge_count() const { return edges_.size(); }
  size_t shape_count() const { return examples_.size(); }

  // Returns the interval's edges in the order of its batch: by shape, then by number.
  std::vector<CommEdgeIndex> BatchMembers(const TrafficInterval& interval) const;

 private:
  using ShapeIndex = uint32_t;

  // Sets shape_of_ and examples_.
  void NumberShapes();
  absl::StatusOr<BatchEstimate> TimeBatch(const TrafficInterval& interval) const;

  NetworkTiming& timing_;
  const absl::Span<const CommEdge> edges_;
  const int threads_;
  // The shape of each comm edge, indexed by edge.
  std::vector<ShapeIndex> shape_of_;
  // The first edge that has each shape, indexed by shape.
  std::vector<CommEdgeIndex> examples_;
  // How long an edge of each shape takes alone, indexed by shape.
  std::vector<EdgeEstimate> isolated_;
  // Batches by the sorted shapes of their edges.
  absl::flat_hash_map<std::vector<ShapeIndex>, BatchIndex> known_;
  std::vector<BatchEstimate> batches_;
};

// In the functions below `batches` is what TimeIntervals returned for the intervals.

// Returns the seconds of each edge beside the others. One that spends d_k of its time in interval
// k, where it would take T_k from beginning to end, takes
//
//   T = sum_k d_k T_k / sum_k d_k
//
// In the replay with isolated times the d_k add up to T_iso, and this is sum_k d_k T_k / T_iso.
// Edges in no interval take as long as alone.
std::vector<double> FoldEdgeTimes(const TrafficIntervalTimer& timer,
                                  absl::Span<const TrafficInterval> traffic,
                                  absl::Span<const BatchIndex> batches);

// Returns the mean inflation of the intervals, each weighed by how long it lasts; 1 without any.
double MeanInflation(const TrafficIntervalTimer& timer, absl::Span<const TrafficInterval> traffic,
                     absl::Span<const BatchIndex> batches);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_TRAFFIC_INTERVAL_TIMER_H_
