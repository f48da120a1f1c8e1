// SPDX-License-Identifier: Apache-2.0
// Simulated communication against a run that it was not calibrated with: collective by collective,
// and where several were under way at once.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/check_reasons.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/step_check.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

class SimulationCheckReport;

// Reports list at most this many collectives, and as many snapshots.
inline constexpr int kMaxCheckedDetails = 10000;

struct SimulationCheckOptions {
  // What the network was calibrated with. Absent: not known.
  std::optional<CalibratedRange> range;
  // What ranks computed meanwhile. Absent: not known.
  std::optional<ComputeBeside> beside;
  // How far predictions may be off. Empty: not known.
  PredictionIntervals intervals;
};

// Returns a report without steps. A network of one dimension is as large as each run.
// InvalidArgument when no run has a collective that can be timed, or the network cannot carry one.
absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const SimulationCheckOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
