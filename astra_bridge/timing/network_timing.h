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

// How the times of a batch came about.
enum class BatchRule {
  // Edges do not slow each other down.
  kIndependent,
  // All were simulated together; an edge lasts until its last participant is done.
  kSimulatedTogether,
  // All were simulated together by a simulator that runs one communication of a rank at a time.
  // Only its makespan means something: every edge takes its isolated time * the inflation.
  kMakespanInflation,
  // A fallback: as if one edge ran after the other. The makespan is the sum of the isolated times,
  // and every edge takes its isolated time * sum / longest.
  kSerialised,
};

// Returns the name in reports, e.g. "makespan inflation".
absl::string_view BatchRuleName(BatchRule rule);

struct EdgeEstimate {
  double seconds = 0;
  // Why another than the engine that was asked gave the answer; empty when it did itself.
  std::string fallback_reason;

  bool is_fallback() const { return !fallback_reason.empty(); }
};

struct BatchEstimate {
  // Seconds of each edge when all start at once, in the order of the edges asked for.
  std::vector<double> seconds;
  // What each edge takes alone, in the same order.
  std::vector<EdgeEstimate> isolated;
  // Number of the network of each edge, in the same order; edges on different networks do not meet.
  // Empty: all edges may meet.
  std::vector<int32_t> networks;
  // When the last edge is over.
  double makespan_seconds = 0;
  // The makespan over the longest isolated time; 1 when nothing takes time.
  double inflation = 1;
  BatchRule rule = BatchRule::kIndependent;
  // Why the batch was not timed by the engine that was asked; empty when it was.
  std::string fallback_reason;

  bool is_fallback() const { return !fallback_reason.empty(); }
};

// Sets the makespan and the inflation of a batch whose `seconds` and `isolated` are there.
void SummariseBatch(BatchEstimate* batch);

// All timings are safe to use from several threads at once.
class NetworkTiming {
 public:
  virtual ~NetworkTiming() = default;

  virtual TimingEngine engine() const = 0;

  // Returns how long the edge takes alone on its network. An edge that moves nothing takes 0 s. One
  // that cannot run there (a device the network does not have) is InvalidArgument and names the
  // edge.
  virtual absl::StatusOr<EdgeEstimate> EstimateEdge(const CommEdge& edge) = 0;

  // Returns how long each takes when all start at once; edges on different networks do not meet.
  virtual absl::StatusOr<BatchEstimate> EstimateBatch(absl::Span<const CommEdge> edges) = 0;
};

// Returns whether a failure is the engine's own: it crashed, hung or cannot express what was asked.
// Bad input, a missing program or an interruption are for the user to know.
bool MayFallBack(const absl::Status& failure);

// A timing that may fail (a process beside ours), with one that steps in. Nothing of it is silent:
// estimates carry the reason.
//
//   an edge    the substitute's time
//   a batch    edges one after the other (BatchRule::kSerialised)
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

#endif  // ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
