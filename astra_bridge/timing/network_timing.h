// SPDX-License-Identifier: Apache-2.0
// What communication costs in seconds, whoever computes it:
//
//   EmbeddedTiming     the simulator in process                      (embedded_timing.h)
//   AstraSimTiming     a user's AstraSim as a process beside ours    (sidecar/astra_sim_timing.h)
//
// and around them FallbackTiming, which steps in for one that fails, and CorrectedTiming, which
// applies calibration. The participants of comm edges are devices of the network here, not ranks of
// the job (edges/job_layout.h turns ranks into devices).
#ifndef ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
#define ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"

namespace meridian {

// Who computes. Engines of equal name and version give equal times.
struct TimingEngine {
  // E.g. "embedded, congestion-aware".
  std::string name;
  std::string version;
};

struct EdgeEstimate {
  double seconds = 0;
  // Why another than the engine that was asked gave the answer; empty when it did itself.
  std::string fallback_reason;

  bool is_fallback() const { return !fallback_reason.empty(); }
};

// All timings are safe to use from several threads at once.
class NetworkTiming {
 public:
  virtual ~NetworkTiming() = default;

  virtual TimingEngine engine() const = 0;

  // Returns how long the edge takes alone on its network. An edge that moves nothing takes 0 s. One
  // that cannot run there (a device the network does not have) is InvalidArgument and names the
  // edge.
  virtual absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) = 0;
};

// Returns what each edge takes alone. Edges that differ in nothing but their id and the name of their
// group are timed once, on up to so many threads; `progress` is told how many have been timed.
absl::StatusOr<std::vector<EdgeEstimate>> EstimateEdges(NetworkTiming& timing,
                                                        absl::Span<const CommEdge> edges,
                                                        int threads,
                                                        absl::FunctionRef<void(uint64_t)> progress);

// Returns whether a failure is the engine's own: it crashed, hung or cannot express what was asked.
// Bad input, a missing program or an interruption are for the user to know.
bool MayFallBack(const absl::Status& failure);

// A timing that may fail (a process beside ours), with one that steps in. Nothing of it is silent:
// estimates carry the reason.
class FallbackTiming : public NetworkTiming {
 public:
  FallbackTiming(std::unique_ptr<NetworkTiming> timing, std::unique_ptr<NetworkTiming> substitute)
      : timing_(std::move(timing)), substitute_(std::move(substitute)) {}

  TimingEngine engine() const override { return timing_->engine(); }
  absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) override;

 private:
  const std::unique_ptr<NetworkTiming> timing_;
  const std::unique_ptr<NetworkTiming> substitute_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
