// SPDX-License-Identifier: Apache-2.0
// Edges a, b and c, numbers 0 to 2, which take 10, 20 and 30 s alone and three times as long in
// company, with a timer that knows it.
#ifndef ASTRA_BRIDGE_PREDICTION_TESTING_TIMED_EDGES_H_
#define ASTRA_BRIDGE_PREDICTION_TESTING_TIMED_EDGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/traffic_interval_timer.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/testing/fabrics.h"
#include "astra_bridge/testing/fixed_timing.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

class TimedEdges {
 public:
  TimedEdges() { MERIDIAN_CHECK(timer_.TimeEdges(Ignore).ok()); }

  size_t size() const { return edges_.size(); }
  const TrafficIntervalTimer& timer() const { return timer_; }

  std::vector<BatchIndex> Time(const std::vector<TrafficInterval>& snapshots) {
    absl::StatusOr<std::vector<BatchIndex>> batches = timer_.TimeIntervals(snapshots, Ignore);
    MERIDIAN_CHECK(batches.ok());
    return *batches;
  }

 private:
  static void Ignore(uint64_t) {}

  static CommEdge Named(const std::string& id, int64_t bytes) {
    CommEdge edge = Edge(CollectiveKind::kAllReduce, bytes, {0, 1});
    edge.id = id;
    return edge;
  }

  const std::vector<CommEdge> edges_ = {Named("a", 1), Named("b", 2), Named("c", 3)};
  FixedTiming timing_{FixedTimes({{"a", 10}, {"b", 20}, {"c", 30}}, 3)};
  TrafficIntervalTimer timer_{timing_, edges_, 1};
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_TESTING_TIMED_EDGES_H_
