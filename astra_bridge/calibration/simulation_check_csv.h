// A simulation held against a measured run, for plots.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_CSV_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_CSV_H_

#include <string>

#include "astra_bridge/calibration/calibration_report.pb.h"

namespace meridian {

// Returns what there is to plot as comma-separated values with a title line: cells, collectives,
// snapshots and steps, told apart by the first column.
std::string SimulationCheckCsv(const SimulationCheckReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_CSV_H_
