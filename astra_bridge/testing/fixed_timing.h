// SPDX-License-Identifier: Apache-2.0
// A timing whose answers are given beforehand.
#ifndef ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_
#define ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Seconds by edge id.
struct FixedTimes {
  FixedTimes() = default;
  explicit FixedTimes(std::map<std::string, double> edge_seconds)
      : seconds(std::move(edge_seconds)) {}

  std::map<std::string, double> seconds;
  // What EstimateEdge returns in place of times unless it is OK.
  absl::Status edge_failure;
};

class FixedTiming : public NetworkTiming {
 public:
  explicit FixedTiming(FixedTimes times) : times_(std::move(times)) {}

  TimingEngine engine() const override { return {"fixed", "1"}; }

  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override {
    if (!times_.edge_failure.ok()) return times_.edge_failure;
    EdgeEstimate estimate;
    estimate.seconds = times_.seconds.at(edge.id);
    return estimate;
  }

 private:
  const FixedTimes times_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_
