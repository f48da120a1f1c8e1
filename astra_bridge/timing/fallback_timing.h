// A timing that may fail (a process beside ours), with one that steps in. Nothing of it is silent:
// estimates carry the reason.
//
//   an edge    the substitute's time
//   a batch    edges one after the other: makespan = sum of the isolated times, each edge takes its
//              isolated time * sum / longest
#ifndef ASTRA_BRIDGE_TIMING_FALLBACK_TIMING_H_
#define ASTRA_BRIDGE_TIMING_FALLBACK_TIMING_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

// True when a failure is the engine's own: it crashed, hung or cannot express what was asked. Bad
// input, a missing program or an interruption are for the user to know.
bool MayFallBack(const absl::Status& failure);

class FallbackTiming : public NetworkTiming {
 public:
  FallbackTiming(std::unique_ptr<NetworkTiming> timing, std::unique_ptr<NetworkTiming> substitute)
      : timing_(std::move(timing)), substitute_(std::move(substitute)) {}

  TimingEngine engine() const override { return timing_->engine(); }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override;
  absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) override;

 private:
  const std::unique_ptr<NetworkTiming> timing_;
  const std::unique_ptr<NetworkTiming> substitute_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_FALLBACK_TIMING_H_
