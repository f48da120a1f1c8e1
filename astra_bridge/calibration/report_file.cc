#include "astra_bridge/calibration/report_file.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {

absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source) {
  CalibrationReport report;
  const absl::Status status = ReportFromJson(json, &report);
  if (status.ok()) return report;
  return absl::InvalidArgumentError(
      absl::StrCat(source,
                   ": this is no report of astra_calibrate, or one of another version; give the "
                   "file that astra_calibrate --report has written (",
                   status.message(), ")"));
}

}  // namespace meridian
