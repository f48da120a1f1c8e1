// compare: what is different between two runs, and what is not.
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipeline/comparison.h"
#include "pipeline/findings.h"
#include "report/bounded_steps.h"
#include "report/run_report_html.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/compared_runs.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {

namespace {

Flag<std::string> FLAGS_before("before", "",
                               "The run to compare with: a folder of profiles, or what combine "
                               "--output_dir made of one.");
Flag<std::string> FLAGS_after("after", "", "The run that is looked at, as --before.");
Flag<std::string> FLAGS_output_dir(
    "output_dir", "",
    "Also writes the page of the run that is looked at, with the comparison, to report.html and "
    "report.json in this folder.");

absl::Status WritePage(RunReport report, const std::string& folder) {
  BoundSteps(&report);
  RETURN_IF_ERROR(FileSystem::Posix().CreateDirectories(folder));
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(
      outputs.WriteText("report", absl::StrCat(folder, "/report.html"), RunReportHtml(report)));
  RETURN_IF_ERROR(
      outputs.WriteText("report_json", absl::StrCat(folder, "/report.json"), ReportToJson(report)));
  return outputs.Commit();
}

absl::StatusOr<int> Compare() {
  ASSIGN_OR_RETURN(const std::string before, RequiredPath(FLAGS_before, "run", "monday/"));
  ASSIGN_OR_RETURN(const std::string after, RequiredPath(FLAGS_after, "run", "tuesday/"));
  ASSIGN_OR_RETURN(const std::optional<double> max_regression, MaxRegression());
  for (const std::string& compared : {before, after}) {
    RETURN_IF_ERROR(CheckApart(compared, UserPath(FLAGS_output_dir)));
  }
  RETURN_IF_ERROR(UseCollectiveKernels());
  ASSIGN_OR_RETURN(const RunReport baseline, ComparedRunReport(before));
  ASSIGN_OR_RETURN(RunReport report, ComparedRunReport(after));
  // What it was compared with before does not count.
  if (report.has_comparison()) report.mutable_findings()->DeleteSubrange(0, 1);
  *report.mutable_comparison() = CompareRuns(baseline, report);
  AddComparisonFinding(&report);
  if (FLAGS_output_dir.given()) {
    report.set_command(absl::StrCat("compare ", absl::StrJoin(ThisCall().arguments, " ")));
    RETURN_IF_ERROR(WritePage(report, UserPath(FLAGS_output_dir)));
  }
  return PrintReport(report.comparison(), ComparisonText,
                     ComparisonExit(report.comparison(), max_regression));
}

}  // namespace

Command CompareCommand() {
  return {"compare",
          "What is different between two runs: steps, the parts of a step, operations, "
          "collectives, ranks. What differs no more than the steps of one run is called no "
          "difference.",
          {"compare monday/ tuesday/", "compare out_monday/ out_tuesday/ --max_regression=5%",
           "compare --before=monday/ --after=tuesday/ --output_dir=difference/"},
          {&FLAGS_before, &FLAGS_after, &FLAGS_output_dir, &FLAGS_max_regression,
           &FLAGS_collective_kernels},
          Compare,
          {},
          /*unnamed=*/2};
}

}  // namespace meridian
