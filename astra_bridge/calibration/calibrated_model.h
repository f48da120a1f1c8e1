// SPDX-License-Identifier: Apache-2.0
// A network with corrections of its times, fitted to measured cells: physics first, a table of
// ratios for a kind only where it predicts better what it was not fitted to.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/physics.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

struct CalibratedModel {
  Physics physics;
  Corrections corrections;
  // Messages one way were not measured, and are taken to last half as long as both ways at once.
  bool assumes_shared_ports = false;
};

struct ModelOptions {
  // Find the intervals of parameters (FitPhysics).
  bool with_intervals = false;
  // Tables go on up to so many ranks; 0: no further than what was measured.
  int32_t most_ranks = 0;
};

// Fits to at least one cell.
//
// A kind has a table when sizes left out of it are predicted better by a tenth at least than by
// physics alone. Where runs of three and more numbers of ranks were measured, the table goes on
// beyond the largest: for each size by physics with the last ratio, or by a line over the logarithm
// of the ranks, as trees grow, whichever predicted the largest run better from the smaller ones.
//
// Where no message went one way, it lasts as long as both ways at once, as links that are full
// duplex have it; but where large messages both ways are slower by 15 % and more than rings, whose
// ranks send and receive as much, sends and receives take turns (ranks that copy for each other on
// one host), and one way takes half.
absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells,
                                         const ModelOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
