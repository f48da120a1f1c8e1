#include "pipeline/workload_page.h"

#include "absl/strings/str_format.h"
#include "pipeline/findings.h"
#include "report/run_report.pb.h"
#include "report/run_report_html.h"

namespace meridian {

std::string WorkloadPage(const WorkloadComparison& comparison) {
  RunReport report;
  report.set_title("Predicted against measured runs");
  *report.mutable_workload() = comparison;
  *report.add_findings() =
      MakeFinding("simulation", comparison.mean_error() <= 0.2 ? "good" : "info", "workload",
                  absl::StrFormat("Predictions of %d runs are off by %.1f %% in the mean.",
                                  comparison.cells_size(), 100 * comparison.mean_error()),
                  absl::StrFormat("%d of %d lie in their intervals, which should hold nine of ten.",
                                  comparison.inside(), comparison.cells_size()));
  *report.mutable_notes() = comparison.notes();
  return RunReportHtml(report);
}

}  // namespace meridian
