// SPDX-License-Identifier: Apache-2.0
// Simulated communication against a run that it was not calibrated with, collective by collective.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/prediction_interval.h"
#include "astra_bridge/calibration/transfers.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

class CalibrationReport;
class SimulationCheckReport;

// Reports list at most this many collectives.
inline constexpr int kMaxCheckedDetails = 10000;

// Returns a report without steps. A network of one dimension is as large as each run.
// InvalidArgument when no run has a collective that can be timed, or the network cannot carry one.
// Without intervals, how far predictions may be off is not known.
absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const PredictionIntervals& intervals = {});

// Returns a note for each run on other devices than the calibration, and for each that it used:
// those that its report names with as many ranks and transfers. Folders are compared as they were
// written, so one that was moved or is named in another way is not recognised.
std::vector<std::string> NotesOnCalibratedRuns(const CalibrationReport& calibration,
                                               absl::Span<const CalibrationRun> runs);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
