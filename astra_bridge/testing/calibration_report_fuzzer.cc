// Any bytes as the report of a calibration: one that is accepted is written so that it is read back.
#include <string>

#include "absl/status/statusor.h"
#include "astra_bridge/calibration/calibration_files.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<CalibrationReport> report = ParseCalibrationReport(bytes, "fuzz.json");
  if (!report.ok()) return absl::OkStatus();
  const std::string json = ReportToJson(*report);
  const absl::StatusOr<CalibrationReport> again = ParseCalibrationReport(json, "again.json");
  if (!again.ok()) return again.status();
  return ReportToJson(*again) == json ? absl::OkStatus()
                                      : absl::InternalError("the report has changed");
}
