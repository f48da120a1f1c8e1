// SPDX-License-Identifier: Apache-2.0
// Another timing with the corrections of a calibration.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Returns what corrections ask about an edge that is alone: a message goes one way.
TransferTraits TraitsOf(const CommEdge& edge);

class CorrectedTiming : public NetworkTiming {
 public:
  CorrectedTiming(std::unique_ptr<NetworkTiming> timing, Corrections corrections)
      : timing_(std::move(timing)), corrections_(std::move(corrections)) {}

  TimingEngine engine() const override { return timing_->engine(); }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override;

 private:
  const std::unique_ptr<NetworkTiming> timing_;
  const Corrections corrections_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
