#include "trace_alignment/trace_check.h"

#include "absl/strings/str_cat.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {

absl::StatusOr<TraceVerdict> CheckTraces(FileSystem& file_system,
                                         const std::vector<std::string>& traces) {
  ASSIGN_OR_RETURN(const CollectiveRun run, ReadCollectiveRun(file_system, traces));
  const ValidationReport report = Validate(run);
  TraceVerdict verdict;
  verdict.holds = report.checked() > 0 && report.violations() == 0;
  verdict.report = FormatValidation(report);
  if (report.checked() == 0) {
    absl::StrAppend(&verdict.report, "No collective has members in two of these ", traces.size(),
                    " profile(s), so there is nothing to check; are they of one run?\n");
  }
  return verdict;
}

}  // namespace meridian
