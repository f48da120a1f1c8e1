#include "astra_bridge/calibration/simulation_check_csv.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/check_reasons.h"
#include "xla_profiler/base/tables/csv_field.h"

namespace meridian {

std::string SimulationCheckCsv(const SimulationCheckReport& report) {
  std::string csv =
      "what,run,name,bytes,group,start_ns,measured_ns,simulated_ns,signed_error,reasons\n";
  const auto add = [&](absl::string_view what, absl::string_view run, absl::string_view name,
                       int64_t bytes, absl::string_view group, int64_t start_ns, const auto& row,
                       absl::string_view reasons) {
    absl::StrAppendFormat(&csv, "%s,%s,%s,%d,%s,%d,%.3f,%.3f,%.6f,%s\n", what, CsvField(run),
                          CsvField(name), bytes, CsvField(group), start_ns, row.measured_ns(),
                          row.simulated_ns(), row.signed_error(), CsvField(reasons));
  };
  for (const CheckedCell& cell : report.cells()) {
    add("cell", "", cell.kind(), cell.bytes(), cell.group(), 0, cell,
        absl::StrJoin(cell.reasons(), "; "));
  }
  for (const CheckedCollective& collective : report.collectives()) {
    add("collective", collective.run(), collective.kind(), collective.bytes(), collective.group(),
        collective.start_ns(), collective, collective.overlapped() ? kMetOthers : "");
  }
  for (const CheckedSnapshot& snapshot : report.snapshots()) {
    add("snapshot", snapshot.run(), snapshot.collectives(), 0, "", snapshot.start_ns(), snapshot,
        "");
  }
  for (const CheckedStep& step : report.steps()) {
    add("step", step.run(), step.has_step() ? absl::StrCat(step.step()) : "all", 0, "", 0, step,
        "");
  }
  return csv;
}

}  // namespace meridian
