// SPDX-License-Identifier: Apache-2.0
// Another timing with the corrections of a calibration. They were measured on collectives that had
// the network to themselves; what that means for the edges of a batch, which begin at once, is in
// corrections.h.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// Returns what corrections ask about edges that are under way at once: a message is one way when no
// other goes against it, that is, none is sent to its source or by its target. `networks` says which
// network each is on, where there are several; edges on different ones have nothing to do with each
// other.
std::vector<TransferTraits> TraitsOf(absl::Span<const CommEdge> edges,
                                     absl::Span<const int32_t> networks = {});

class CorrectedTiming : public NetworkTiming {
 public:
  CorrectedTiming(std::unique_ptr<NetworkTiming> timing, Corrections corrections)
      : timing_(std::move(timing)), corrections_(std::move(corrections)) {}

  TimingEngine engine() const override { return timing_->engine(); }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override;
  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) override;

 private:
  // Returns for each edge how much longer than the engine says the others of its network take.
  std::vector<double> Stretches(absl::Span<const CommEdge> edges,
                                absl::Span<const TransferTraits> traits,
                                const BatchEstimate& batch) const;
  double CorrectedSeconds(const CommEdge& edge, double engine_seconds) const;

  const std::unique_ptr<NetworkTiming> timing_;
  const Corrections corrections_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTED_TIMING_H_
