// A simulation held against a measured run, for people to read.
#ifndef ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_TEXT_H_
#define ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_TEXT_H_

#include <string>

#include "astra_bridge/calibration/calibration_report.pb.h"

namespace meridian {

// Returns the report as text for people: what it comes to, and what sets it apart, at the end.
std::string FormatSimulationCheck(const SimulationCheckReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_SIMULATION_CHECK_TEXT_H_
