// What communication costs in seconds, whoever computes it:
//
//   AnalyticalTiming   latency and bandwidth, by formulas            (analytical_timing.h)
//   EmbeddedTiming     the simulator in process                      (embedded_timing.h)
//   AstraSimTiming     a user's AstraSim as a process beside ours    (sidecar/astra_sim_timing.h)
//
// and around them FallbackTiming, which steps in for one that fails, and CorrectedTiming, which
// applies calibration. Participants of edges are devices of the network here (see job_layout.h).
#ifndef ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
#define ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"

namespace meridian {

// Who computes. Equal names and versions give equal times.
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
  // In the order of the edges asked for: when all start at once, and each alone.
  std::vector<double> seconds;
  std::vector<EdgeEstimate> isolated;
  // By edge, the number of its network; edges on different ones do not meet. Empty: all may meet.
  std::vector<int32_t> networks;
  double makespan_seconds = 0;
  // makespan / longest isolated time; 1 when nothing takes time.
  double inflation = 1;
  BatchRule rule = BatchRule::kIndependent;
  // As above, of the batch.
  std::string fallback_reason;

  bool is_fallback() const { return !fallback_reason.empty(); }
};

// Sets makespan and inflation from seconds and isolated.
void SummariseBatch(BatchEstimate* batch);

// Returns the makespan over the sum of the isolated times: 1 when edges gain nothing from running
// at once, or when nothing takes time.
double InflationOverSum(const BatchEstimate& batch);

// Safe to use from several threads at once.
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

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_NETWORK_TIMING_H_
