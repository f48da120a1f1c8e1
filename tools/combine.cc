// combine: the profiles of a run's nodes on one clock, in one file, and the whole chain behind that.
#ifdef __linux__
#include <sys/auxv.h>
#endif

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pipeline/align_stage.h"
#include "pipeline/findings.h"
#include "pipeline/job_traces.h"
#include "pipeline/run_chain.h"
#include "report/run_report_html.h"
#include "tools/combine_flags.h"
#include "tools/combine_report_text.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "trace_alignment/combine/combiner.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_plane_naming("plane_naming", "viewer",
                                     "viewer: /device:GPU:<n> numbered through and one /host:CPU. "
                                     "node_prefix: /node:<id>/... for every plane.");
Flag<std::string> FLAGS_output("output", "",
                               "Where the combined profile goes; gzip when it ends in .gz.");
Flag<std::string> FLAGS_output_dir(
    "output_dir", "",
    "A folder for all that is made: without other outputs the whole chain is run, and report.html "
    "is the answer. Aligned profiles go to plugins/profile/<run>/, one per node; with --output, "
    "--trace_json, --perfetto or --report these alone.");
Flag<std::string> FLAGS_sweep(
    "sweep", "",
    "Profiles of a sweep of sizes on the same machine, to calibrate the network with: a comma list "
    "of files, folders or globs. Default: the run's own collectives.");
Flag<std::string> FLAGS_trace_json(
    "trace_json", "",
    "Writes the combined profile as Chrome trace JSON; gzip when it ends in .gz.");
Flag<std::string> FLAGS_perfetto(
    "perfetto", "", "Writes the combined profile in Perfetto's format; gzip when it ends in .gz.");
Flag<std::string> FLAGS_report("report", "", "Also writes a page (HTML) about what was done.");
Flag<std::string> FLAGS_report_json("report_json", "",
                                    "Also writes what --json prints to this file.");
Flag<std::string> FLAGS_stages(
    "stages", "",
    "Run only some stages, a comma list. Of the whole chain: align (clocks, combined profile; "
    "always), chakra (execution traces), path (critical path, blame, what-if), simulate "
    "(calibration, simulated against measured), report. With single outputs: align, combine "
    "(--output, --output_dir), export (--trace_json, --perfetto), report (--report, "
    "--report_json). Default: all.");
Flag<bool> FLAGS_validate(
    "validate", false,
    "Read the written files back and exit with 1 when a collective violates happens-before.");

struct Job {
  CombineRequest request;
  // Where the page and the JSON go; empty for what is not wanted.
  std::string html;
  std::string json;
};

struct StageOutput {
  std::string stage;
  absl::string_view flag;
  std::string* path;
};

// Forgets the outputs of stages that are not to run, and says so.
absl::Status SelectStages(const std::string& list, Job* job) {
  if (list.empty()) return absl::OkStatus();
  const absl::flat_hash_set<std::string> known = {"align", "combine", "export", "report"};
  const absl::flat_hash_set<std::string> wanted = absl::StrSplit(list, ',');
  for (const std::string& stage : wanted) {
    if (known.contains(stage)) continue;
    return InvalidArgument("--stages: '", stage, "' is none of align, combine, export, report");
  }
  if (wanted.contains("export") && !wanted.contains("combine")) {
    return InvalidArgument("--stages: export shows the combined file; give combine, too");
  }
  const StageOutput outputs[] = {{"combine", "output", &job->request.output},
                                 {"combine", "output_dir", &job->request.output_dir},
                                 {"export", "trace_json", &job->request.trace_json},
                                 {"export", "perfetto", &job->request.perfetto},
                                 {"report", "report", &job->html},
                                 {"report", "report_json", &job->json}};
  std::vector<std::string> left_out;
  bool writes = false;
  for (const StageOutput& output : outputs) {
    if (output.path->empty()) continue;
    writes = writes || wanted.contains(output.stage);
    if (wanted.contains(output.stage)) continue;
    output.path->clear();
    left_out.push_back(absl::StrCat("--", output.flag, " is written by the stage ", output.stage));
  }
  if (left_out.empty()) return absl::OkStatus();
  const std::string reason =
      absl::StrCat(absl::StrJoin(left_out, ", "), ", which --stages=", list, " leaves out");
  // Some stages with all their outputs is what the flag is for; none at all is a mistake.
  if (!writes) return InvalidArgument(reason, ": nothing would be written; name the stage, too");
  std::fprintf(stderr, "combine: note: %s\n", reason.c_str());
  return absl::OkStatus();
}

absl::StatusOr<CombineRequest> RequestFlags() {
  ASSIGN_OR_RETURN(RunFiles files, FindCombineFiles());
  ASSIGN_OR_RETURN(CombineRequest request, AlignmentRequest());
  request.files = std::move(files);
  ASSIGN_OR_RETURN(
      request.naming,
      NamedValue<PlaneNaming>(FLAGS_plane_naming, {{"viewer", PlaneNaming::kViewer},
                                                   {"node_prefix", PlaneNaming::kNodePrefix}}));
  request.output = UserPath(FLAGS_output);
  request.output_dir = UserPath(FLAGS_output_dir);
  request.trace_json = UserPath(FLAGS_trace_json);
  request.perfetto = UserPath(FLAGS_perfetto);
  request.validate = FLAGS_validate.value();
  return request;
}

absl::StatusOr<Job> ReadFlags() {
  Job job;
  ASSIGN_OR_RETURN(job.request, RequestFlags());
  job.html = UserPath(FLAGS_report);
  job.json = UserPath(FLAGS_report_json);
  RETURN_IF_ERROR(SelectStages(FLAGS_stages.value(), &job));
  job.request.other_outputs = {job.html, job.json};
  return job;
}

// A run of four nodes whose clocks are off by known amounts, and a sweep of the same machine.
constexpr char kExampleRun[] = "examples/one_machine/tp_cuda4_skewed";
constexpr char kExampleSweep[] = "examples/one_machine/sweep_cuda4";

// Returns the folder that the program lies in; empty when nobody can tell.
std::string ProgramFolder() {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
#ifdef __linux__
  // Without /proc (a chroot): the path that the kernel was given.
  if (error && getauxval(AT_EXECFN) != 0) {
    program = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    const std::filesystem::path target = std::filesystem::canonical(program, error);
    if (!error) program = target;
  }
#endif
  return program.parent_path().string();
}

// Returns the folder of an example. It lies beside the program as Bazel runs it, or in
// ../share/meridian as it is installed.
absl::StatusOr<std::string> FindBundledExample(const std::string& example) {
  // As it was called, which need not tell where the program is.
  const std::string& program = ThisCall().program;
  const std::string candidates[] = {
      // Bazel calls the workspace by its name, or _main.
      absl::StrCat(program, ".runfiles/meridian/", example),
      absl::StrCat(program, ".runfiles/_main/", example),
      absl::StrCat(ProgramFolder(), "/../share/meridian/", example),
      // `bazel run` starts programs among their files.
      example,
  };
  for (const std::string& candidate : candidates) {
    const absl::StatusOr<FileKind> kind = FileSystem::Posix().Kind(candidate);
    if (kind.ok() && *kind == FileKind::kDirectory) return candidate;
  }
  return NotFound("the bundled example, ", example,
                  ", is not beside the program; give --traces or --run_dir, see --help");
}

// What is shown to whoever gives no flags.
absl::StatusOr<ChainRequest> ExampleChain() {
  FileSystem& files = FileSystem::Posix();
  ChainRequest request;
  ASSIGN_OR_RETURN(const std::string example, FindBundledExample(kExampleRun));
  ASSIGN_OR_RETURN(const std::string sweep, FindBundledExample(kExampleSweep));
  ASSIGN_OR_RETURN(request.combine.files, FindRunFiles(files, example));
  ASSIGN_OR_RETURN(request.sweep, FindRunTraces(files, sweep));
  request.combine.input = UserInputOptions();
  request.output_dir = UserPath("meridian_out");
  std::fprintf(stderr,
               "combine: no flags; running the bundled example into ./meridian_out (see --help)\n");
  return request;
}

bool WantsChain() {
  return FLAGS_output_dir.given() && !FLAGS_output.given() && !FLAGS_trace_json.given() &&
         !FLAGS_perfetto.given() && !FLAGS_report.given() && !FLAGS_report_json.given();
}

absl::StatusOr<ChainRequest> ChainFlags() {
  FileSystem& files = FileSystem::Posix();
  ChainRequest request;
  ASSIGN_OR_RETURN(request.combine, RequestFlags());
  request.output_dir = UserPath(FLAGS_output_dir);
  request.combine.output_dir.clear();
  request.command =
      absl::StrCat("combine ", FLAGS_run_dir.given() ? "--run_dir=" : "--traces=",
                   FLAGS_run_dir.given() ? FLAGS_run_dir.value() : FLAGS_traces.value(),
                   FLAGS_sweep.given() ? " --sweep=" : "", FLAGS_sweep.value(),
                   " --output_dir=", FLAGS_output_dir.value());
  for (absl::string_view stage : absl::StrSplit(FLAGS_stages.value(), ',', absl::SkipEmpty())) {
    if (!absl::c_linear_search(kChainStages, stage)) {
      return InvalidArgument("--stages: '", stage, "' is none of ",
                             absl::StrJoin(kChainStages, ", "));
    }
    request.stages.insert(std::string(stage));
  }
  if (FLAGS_run_dir.given()) {
    const absl::StatusOr<JobTraces> traces = FindJobTraces(files, UserPath(FLAGS_run_dir));
    if (traces.ok()) request.host_traces = traces->host_traces;
  }
  if (!FLAGS_sweep.given()) return request;
  ASSIGN_OR_RETURN(request.sweep, ListedProfiles(FLAGS_sweep, "sweep/"));
  for (const std::string& trace : request.combine.files.traces) {
    if (!absl::c_linear_search(request.sweep, trace)) continue;
    return InvalidArgument("--sweep names ", trace,
                           ", a profile of the run itself; without --sweep the run's own "
                           "collectives are used, and steps are held out");
  }
  return request;
}

// Without flags, but for --json.
bool WantsExample() {
  const std::vector<std::string>& arguments = ThisCall().arguments;
  return arguments.empty() || (arguments.size() == 1 && arguments[0] == "--json");
}

// The answer first, then where to read on.
std::string FormatChain(const RunReport& report) {
  std::string text = FindingsText(report);
  for (const ReportedStage& stage : report.stages()) {
    if (stage.state() != "failed") continue;
    absl::StrAppend(&text, "not done: ", stage.name(), ": ", Printable(stage.note()), "\n");
  }
  for (const CombinedOutput& output : report.combine().outputs()) {
    if (output.kind() != "report") continue;
    absl::StrAppend(&text, "\nreport: ", Printable(output.path()), "\n");
  }
  return text;
}

absl::StatusOr<int> CombineWhole(ChainRequest request) {
  request.version = std::string(Version());
  ASSIGN_OR_RETURN(const RunReport report, RunChain(FileSystem::Posix(), request));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report.combine()) : FormatChain(report)));
  const bool violated =
      FLAGS_validate.value() && report.combine().happens_before().violations_after() > 0;
  return violated ? kExitCheckFailed : kExitDone;
}

absl::StatusOr<int> Combine() {
  if (WantsExample()) {
    ASSIGN_OR_RETURN(const ChainRequest request, ExampleChain());
    return CombineWhole(request);
  }
  if (WantsChain()) {
    ASSIGN_OR_RETURN(const ChainRequest request, ChainFlags());
    return CombineWhole(request);
  }
  if (FLAGS_sweep.given()) {
    return InvalidArgument(
        "--sweep is for the whole chain: give --output_dir, and no other outputs");
  }
  ASSIGN_OR_RETURN(Job job, ReadFlags());
  OutputFiles outputs(FileSystem::Posix());
  ASSIGN_OR_RETURN(CombineReport report, CombineRun(FileSystem::Posix(), job.request, outputs));
  if (!job.html.empty()) {
    const std::string& name = job.request.files.name;
    const RunReport page = AlignmentReport(report, name.empty() ? "Combined profile" : name);
    RETURN_IF_ERROR(WriteReport("report", job.html, RunReportHtml(page), &outputs, &report));
  }
  if (!job.json.empty()) {
    RETURN_IF_ERROR(WriteReport("report_json", job.json, ReportToJson(report), &outputs, &report));
  }
  RETURN_IF_ERROR(outputs.Commit());
  const bool violated = job.request.validate && report.happens_before().violations_after() > 0;
  return PrintReport(report, FormatCombineReport, violated ? kExitCheckFailed : kExitDone);
}

}  // namespace

Command CombineCommand() {
  return {"combine",
          "From the profiles of a run to one report: puts them on one clock and states how far it "
          "may be off, checks happens-before, writes files for viewers and simulators, finds who "
          "waits for whom, calibrates and simulates. Without flags it does so with a bundled "
          "example, into ./meridian_out.",
          {"combine --run_dir=logs/ --output_dir=out/",
           "combine --run_dir=logs/ --sweep=sweep/ --output_dir=out/",
           "combine --run_dir=logs/ --output=combined.xplane.pb --validate",
           "combine --traces='rank*.xplane.pb' --method=collectives --output=combined.xplane.pb"},
          {&FLAGS_run_dir,        &FLAGS_traces,        &FLAGS_snapshots,
           &FLAGS_offsets,        &FLAGS_probes,        &FLAGS_method,
           &FLAGS_reference_node, &FLAGS_node_ids,      &FLAGS_profile_start_ns,
           &FLAGS_ranks,          &FLAGS_max_drift_ppm, &FLAGS_min_transfer_ns,
           &FLAGS_end_agreement,  &FLAGS_offset_slope,  &FLAGS_max_extrapolation_ms,
           &FLAGS_plane_naming,   &FLAGS_output,        &FLAGS_output_dir,
           &FLAGS_trace_json,     &FLAGS_perfetto,      &FLAGS_report,
           &FLAGS_report_json,    &FLAGS_stages,        &FLAGS_validate,
           &FLAGS_sweep},
          Combine};
}

}  // namespace meridian
