// SPDX-License-Identifier: Apache-2.0
// A timing whose answers are given beforehand.
#ifndef ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_
#define ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Seconds by edge id; in a batch every edge takes `inflation` times as long.
struct FixedTimes {
  FixedTimes() = default;
  explicit FixedTimes(std::map<std::string, double> edge_seconds, double batch_inflation = 1)
      : seconds(std::move(edge_seconds)), inflation(batch_inflation) {}

  std::map<std::string, double> seconds;
  double inflation = 1;
  // What EstimateEdge and EstimateBatch return in place of times unless these are OK.
  absl::Status edge_failure;
  absl::Status batch_failure;
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

  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) override {
    if (!times_.batch_failure.ok()) return times_.batch_failure;
    BatchEstimate batch;
    batch.rule = BatchRule::kSimulatedTogether;
    for (const CommEdge& edge : edges) {
      batch.isolated.emplace_back();
      batch.isolated.back().seconds = times_.seconds.at(edge.id);
      batch.seconds.push_back(times_.seconds.at(edge.id) * times_.inflation);
    }
    SummariseBatch(&batch);
    return batch;
  }

 private:
  const FixedTimes times_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TESTING_FIXED_TIMING_H_
