// validate_collectives: does any collective end before it began somewhere?
#include <cstdio>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "The profiles of one run, one per node: a comma list of files, folders or globs.");
Flag<std::string> FLAGS_csv("csv", "", "Also writes the violations to this file.");

absl::StatusOr<int> ValidateTraces() {
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
  const std::string csv = UserPath(FLAGS_csv);
  RETURN_IF_ERROR(CheckOutputPaths(traces, {csv}));
  CollectiveRunOptions options;
  options.reader.input = UserInputOptions();
  ASSIGN_OR_RETURN(const CollectiveRun run,
                   ReadCollectiveRun(FileSystem::Posix(), traces,
                                     WithProgress(options, "reading", traces.size())));
  RETURN_IF_ERROR(CheckOneRun(run));
  const ValidationReport report = Validate(run);
  if (report.instances() == 0) {
    return InvalidArgument(traces[0], traces.size() > 1 ? " and the others hold" : ": there is",
                           " no collective: nothing can be checked. Were the devices profiled?");
  }
  if (report.checked() == 0) {
    std::fprintf(stderr,
                 "warning: nothing was checked, for no collective is in the profiles of two ranks; "
                 "are all profiles of the run among --traces?\n");
  }
  RETURN_IF_ERROR(WriteOutput(FileSystem::Posix(), csv, ValidationCsv(report)));
  return PrintReport(report, FormatValidation,
                     report.violations() > 0 ? kExitCheckFailed : kExitDone);
}

}  // namespace

Command ValidateCollectivesCommand() {
  return {"validate_collectives",
          "Checks happens-before of every collective across the profiles of a run: in an "
          "all-reduce, say, nobody ends before everybody has started. Exits with 1 when a "
          "collective violates it, which means that the clocks of the nodes disagree.",
          {"validate_collectives --traces=run/",
           "validate_collectives --traces='rank*.xplane.pb' --json"},
          {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_csv},
          ValidateTraces};
}

}  // namespace meridian
