// SPDX-License-Identifier: Apache-2.0
// A network with corrections of its times, fitted to measured cells.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// How many times as fast a port does what goes one way as each of what goes both ways, where nobody
// measured it. Single pairs of ranks that share a host were seen to be twice as fast; in six jobs,
// with several at once, it was 1.0 to 1.7 times.
inline constexpr double kOneWayAdvantage = 1.6;

// What predicts cells: the engine's parameters, and corrections of its times.
struct CalibratedModel {
  ParameterFit parameters;
  Corrections corrections;
};

// Fits to at least one cell.
absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells);

// Returns one point for each kind, size and EffectiveRanks: the geometric mean over its cells,
// wherever their groups lie, of measured over engine time; messages one way are a kind of their
// own. Sizes nearer to each other than kSameSizeFactor share a point. engine_ns is by cell.
Corrections FitCorrections(absl::Span<const TransferCell> cells,
                           absl::Span<const double> engine_ns);

// Adds what messages one way, or both ways, take where only the others were measured: a port that
// sends and receives at once is taken to do each slower, as those of hosts do whose processors move
// the data. Where both were measured, but not of all sizes, the assumption is scaled to what was.
absl::Status AssumeUnmeasuredMessages(const Fabric& fabric, Corrections* corrections);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
