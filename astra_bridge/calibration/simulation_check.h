// Simulated communication against a run that it was not calibrated with: collective by collective,
// and where several were under way at once.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibrated_range.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/calibration_run.h"
#include "astra_bridge/corrections.h"
#include "astra_bridge/fabric.h"

namespace meridian {

// Reports list at most this many collectives, and as many snapshots.
inline constexpr int kMaxCheckedDetails = 10000;

struct SimulationCheckOptions {
  // Absent: not known.
  std::optional<CalibratedRange> range;
};

// A network of one dimension is as large as each run. InvalidArgument when no run has a collective
// that can be timed, or the network cannot carry one.
absl::StatusOr<SimulationCheckReport> CheckSimulation(absl::Span<const CalibrationRun> runs,
                                                      const Fabric& fabric,
                                                      const Corrections& corrections,
                                                      const SimulationCheckOptions& options = {});

// Returns the report as text for people.
std::string FormatSimulationCheck(const SimulationCheckReport& report);

// Returns what there is to plot as comma-separated values with a title line: cells, collectives,
// snapshots and steps, told apart by the first column.
std::string SimulationCheckCsv(const SimulationCheckReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_H_
