// SPDX-License-Identifier: Apache-2.0
// The report of a calibration as a file.
#ifndef ASTRA_BRIDGE_CALIBRATION_REPORT_FILE_H_
#define ASTRA_BRIDGE_CALIBRATION_REPORT_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration_report.pb.h"

namespace meridian {

// Parses the JSON that astra_calibrate --report has written. Errors name the source.
absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_REPORT_FILE_H_
