// validate_collectives: does any collective end before it began somewhere?
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "tools/command.h"
#include "tools/pipeline/output_files.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"

ABSL_FLAG(std::string, traces, "",
          "The profiles of one run, one per node: a comma list of files, folders or globs.");
ABSL_FLAG(std::string, csv, "", "Also writes the violations to this file.");

namespace meridian {
namespace {

// The bar is gone before anything is printed.
absl::StatusOr<CollectiveRun> ReadWithProgress(const std::vector<std::string>& traces) {
  ProgressBar progress("reading", traces.size());
  CollectiveRunOptions options;
  options.reader.input = UserInputOptions();
  options.progress = [&](size_t file) { progress.Update(file); };
  return ReadCollectiveRun(FileSystem::Posix(), traces, options);
}

absl::StatusOr<int> ValidateTraces() {
  FileSystem& files = FileSystem::Posix();
  ASSIGN_OR_RETURN(const std::vector<std::string> traces,
                   UserProfiles(absl::GetFlag(FLAGS_traces), "run/"));
  const std::string csv = UserPath(absl::GetFlag(FLAGS_csv));
  RETURN_IF_ERROR(CheckOutputPaths(traces, {csv}));
  ASSIGN_OR_RETURN(const CollectiveRun run, ReadWithProgress(traces));
  RETURN_IF_ERROR(CheckOneRun(run));
  const ValidationReport report = Validate(run);
  if (!csv.empty()) RETURN_IF_ERROR(WriteFileAtomically(files, csv, ValidationCsv(report)));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : FormatValidation(report)));
  return report.violations() > 0 ? kExitCheckFailed : kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"validate_collectives",
       "Checks happens-before of every collective across the profiles of a run: in an all-reduce, "
       "say, nobody ends before everybody has started. Exits with 1 when a collective violates it, "
       "which means that the clocks of the nodes disagree.",
       {"validate_collectives --traces=run/",
        "validate_collectives --traces='rank*.xplane.pb' --json"},
       {"traces", "csv"}},
      argc, argv, meridian::ValidateTraces);
}
