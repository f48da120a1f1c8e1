#include "pipeline/workload_page.h"

#include "absl/strings/str_format.h"
#include "report/run_report.pb.h"
#include "report/run_report_html.h"

namespace meridian {

std::string WorkloadPage(const WorkloadComparison& comparison) {
  constexpr double kMsPerUs = 1e-3;
  RunReport report;
  report.set_title("Predicted against measured runs");
  WorkloadPart& part = *report.mutable_workload();
  part.set_mean_error(comparison.mean_error());
  part.set_inside(comparison.inside());
  for (const ComparedCell& cell : comparison.cells()) {
    WorkloadCellPart& row = *part.add_cells();
    row.set_nodes(cell.nodes());
    row.set_size(cell.size());
    row.set_measured_ms(cell.measured_us() * kMsPerUs);
    row.set_predicted_ms(cell.predicted_us() * kMsPerUs);
    row.set_low_ms(cell.low_us() * kMsPerUs);
    row.set_high_ms(cell.high_us() * kMsPerUs);
    row.set_extrapolated(cell.extrapolated());
  }
  for (const ComparedTransition& transition : comparison.transitions()) {
    WorkloadTransitionPart& row = *part.add_transitions();
    row.set_source(transition.source());
    row.set_destination(transition.destination());
    row.set_measured_ms(transition.measured_us() * kMsPerUs);
    row.set_predicted_ms(transition.predicted_us() * kMsPerUs);
    row.set_error(transition.error());
  }
  Finding& finding = *report.add_findings();
  finding.set_topic("simulation");
  finding.set_section("workload");
  finding.set_verdict(comparison.mean_error() <= 0.2 ? "good" : "info");
  finding.set_headline(absl::StrFormat("Predictions of %d runs are off by %.1f %% in the mean.",
                                       comparison.cells_size(), 100 * comparison.mean_error()));
  finding.set_detail(
      absl::StrFormat("%d of %d lie in their intervals, which should hold nine of ten.",
                      comparison.inside(), comparison.cells_size()));
  for (const std::string& note : comparison.notes()) report.add_notes(note);
  return RunReportHtml(report);
}

}  // namespace meridian
