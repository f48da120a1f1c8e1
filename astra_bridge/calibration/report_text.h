// SPDX-License-Identifier: Apache-2.0
// The reports of astra_calibrate and astra_validate as text for people.
#ifndef ASTRA_BRIDGE_CALIBRATION_REPORT_TEXT_H_
#define ASTRA_BRIDGE_CALIBRATION_REPORT_TEXT_H_

#include <string>

namespace meridian {

class CalibrationReport;
class SimulationCheckReport;

// Return e.g. "12.3 %" and "-12.3 %"; what rounds to nothing has no sign but "+".
std::string Percent(double share);
std::string SignedPercent(double share);

std::string FormatCalibration(const CalibrationReport& report);

std::string FormatSimulationCheck(const SimulationCheckReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_REPORT_TEXT_H_
