// A calibration's report as text for people.
#ifndef ASTRA_BRIDGE_CALIBRATION_CALIBRATION_TEXT_H_
#define ASTRA_BRIDGE_CALIBRATION_CALIBRATION_TEXT_H_

#include <string>

#include "astra_bridge/calibration/calibration_report.pb.h"

namespace meridian {

std::string FormatCalibration(const CalibrationReport& report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_CALIBRATION_TEXT_H_
