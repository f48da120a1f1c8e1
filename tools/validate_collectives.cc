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
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "The profiles of one run, one per node: a comma list of files, folders or globs.");
Flag<std::string> FLAGS_csv("csv", "", "Also writes the violations to this file.");

// Flight recorder dumps say who called what; their times are too coarse to check clocks by.
absl::StatusOr<int> ValidateDumps(const std::vector<std::string>& dumps, const std::string& csv) {
  const auto open = [&](size_t dump) {
    return InputFile::Open(FileSystem::Posix(), dumps[dump], UserInputOptions());
  };
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const std::vector<FlightDump> read, ReadFlightDumps(dumps.size(), open, &notes));
  ValidationReport report = FindHangs(read);
  for (const std::string& note : notes) report.add_notes(note);
  if (report.hangs().empty() && report.checked() == 0) {
    PrintWarnings(report.notes());
    return InvalidArgument("nothing could be compared: the dumps of ", read.size(),
                           " rank(s) hold ", report.instances(),
                           " calls, none of which is in the dumps of two; give those of all ranks");
  }
  RETURN_IF_ERROR(WriteOutput(FileSystem::Posix(), csv, ValidationCsv(report)));
  return PrintReport(report, FormatHangs, report.hangs().empty() ? kExitDone : kExitCheckFailed);
}

absl::StatusOr<int> ValidateTraces() {
  ASSIGN_OR_RETURN(const std::vector<std::string> traces, UserProfiles(FLAGS_traces, "run/"));
  const std::string csv = UserPath(FLAGS_csv);
  RETURN_IF_ERROR(CheckOutputPaths(traces, {csv}));
  RETURN_IF_ERROR(UseCollectiveKernels());
  ASSIGN_OR_RETURN(const TraceSource* source, DetectOneSource(FileSystem::Posix(), traces));
  if (source->TellsWhyJobsHang()) return ValidateDumps(traces, csv);
  CollectiveRunOptions options;
  options.reader.input = UserInputOptions();
  ASSIGN_OR_RETURN(const CollectiveRun run,
                   ReadCollectiveRun(FileSystem::Posix(), traces,
                                     WithProgress(options, "reading", traces.size())));
  RETURN_IF_ERROR(CheckOneRun(run));
  const ValidationReport report = Validate(run);
  if (report.instances() == 0) {
    return InvalidArgument(DescribeNoCollectives(run.profiles),
                           ": nothing can be checked. Were the devices profiled?");
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
          "collective violates it, which means that the clocks of the nodes disagree. Of PyTorch's "
          "flight recorder dumps it says why a job hangs: the first call on which ranks disagree, "
          "or to which some have not come; then it exits with 1.",
          {"validate_collectives --traces=run/",
           "validate_collectives --traces='/tmp/nccl_trace_rank_*'",
           "validate_collectives --traces='rank*.xplane.pb' --json"},
          {&FLAGS_traces, &FLAGS_run_dir, &FLAGS_csv, &FLAGS_collective_kernels},
          ValidateTraces};
}

}  // namespace meridian
