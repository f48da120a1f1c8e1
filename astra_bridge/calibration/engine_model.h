// SPDX-License-Identifier: Apache-2.0
// What the engine says about cells, how far that lies from what was measured, and the numbers of a
// fabric that may be fitted.
#ifndef ASTRA_BRIDGE_CALIBRATION_ENGINE_MODEL_H_
#define ASTRA_BRIDGE_CALIBRATION_ENGINE_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/network_timing.h"

namespace meridian {

class ErrorSummary;

// A local memory that makes reductions cost nothing, in 1e9 bytes per second. The engine also takes
// 0 for that, but AstraSim does not end with it.
inline constexpr double kFreeReductions = 1e15;

// Returns what to assume of a network of which nothing is known but how many ranks each of its
// levels has, the innermost first: links between all of a level, 50 GiB/s and 500 ns each; rings
// for all collectives but all-to-all, which libraries send pairwise.
Fabric AssumedFabric(const std::vector<int32_t>& levels);

// Returns the shape with the bandwidth and latency of AssumedFabric in every dimension, and
// reductions that cost nothing.
Fabric WithAssumedParameters(const Fabric& shape);

// Returns the fabric that carries a run of so many ranks: its last dimension grows or shrinks with
// them. One whose other dimensions do not divide them is what it is.
Fabric FabricForRanks(const Fabric& fabric, int32_t ranks);

// Returns a fabric as links that transfers share. FullyConnected levels are read as what a calibration
// means by them: each rank has one port to a switch, as fast as what was calibrated.
absl::StatusOr<Fabric> WithSharedPorts(const Fabric& fabric);

// Returns the engine on FabricForRanks.
NetworkTiming EngineForRanks(const Fabric& fabric, int32_t ranks);

// Returns how long each cell takes alone on the fabric, in nanoseconds, at least kLeastEngineNs.
// InvalidArgument for a cell that the fabric cannot carry: it has too few NPUs.
absl::StatusOr<std::vector<double>> EngineTimesNs(const Fabric& fabric,
                                                  absl::Span<const TransferCell> cells);

// Returns what corrections depend on.
TransferTraits TraitsOf(const TransferCell& cell);

// Returns EngineTimesNs with corrections.
absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells);

struct Prediction {
  int64_t bytes = 0;
  // Measured time in nanoseconds; always positive.
  double measured_ns = 0;
  double predicted_ns = 0;

  double signed_error() const { return predicted_ns / measured_ns - 1; }
};

// Returns how far predictions lie from what was measured, also of kLargeBytes and more and of less.
// All zero, with no parts, when there are none.
ErrorSummary SummariseErrors(absl::Span<const Prediction> predictions);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_ENGINE_MODEL_H_
