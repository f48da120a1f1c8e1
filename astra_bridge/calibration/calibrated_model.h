// Measured cells turned into what predicts others: the engine's parameters, and the corrections of
// its times.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/correction_fit.h"
#include "astra_bridge/calibration/parameter_fit.h"
#include "astra_bridge/calibration/transfer_cells.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

struct CalibratedModel {
  ParameterFit parameters;
  PenaltyChoice penalty;
  Corrections corrections;
};

// At least one cell.
absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells);

// Returns how long each cell takes by engine and corrections, in nanoseconds.
absl::StatusOr<std::vector<double>> PredictCellsNs(const Fabric& fabric,
                                                   const Corrections& corrections,
                                                   absl::Span<const TransferCell> cells);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATED_MODEL_H_
