#include "astra_bridge/calibration/report_file.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/json_util.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {

absl::StatusOr<CalibrationReport> ParseCalibrationReport(absl::string_view json,
                                                         absl::string_view source) {
  CalibrationReport report;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &report);
  if (status.ok()) return report;
  // Parsers append lines that point into the text.
  absl::string_view reason(status.message().data(), status.message().size());
  absl::ConsumePrefix(&reason, ": ");
  return absl::InvalidArgumentError(
      absl::StrCat(source,
                   ": this is no report of astra_calibrate, or one of another version; give the "
                   "file that astra_calibrate --report has written (",
                   Printable(reason.substr(0, reason.find('\n'))), ")"));
}

}  // namespace meridian
