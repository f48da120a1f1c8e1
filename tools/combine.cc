// combine: the profiles of a run's nodes on one clock, in one file, and the whole chain behind that.
#ifdef __linux__
#include <sys/auxv.h>
#endif

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "pipeline/align_stage.h"
#include "pipeline/findings.h"
#include "pipeline/job_traces.h"
#include "pipeline/run_chain.h"
#include "report/bounded_steps.h"
#include "report/run_report_html.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/compared_runs.h"
#include "tools/profiles.h"
#include "trace_alignment/clocks/offset_samples.h"
#include "trace_alignment/combine/combiner.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/run/combine_run.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_traces(
    "traces", "",
    "The profiles of one run, one per node: a comma list of files, folders or globs.");
Flag<std::string> FLAGS_snapshots(
    "snapshots", "",
    "Snapshot pairs, one file per trace in the order of the traces. Default: the profiles' planes "
    "/host:snapshots, where they have one.");
Flag<std::string> FLAGS_offsets("offsets", "",
                                "Offsets of the nodes' clocks from the reference: JSONL.");
Flag<std::string> FLAGS_probes(
    "probes", "",
    "Probe windows or raw two-way probes: a comma list of JSONL files, folders or globs.");
Flag<std::string> FLAGS_method("method", "auto",
                               "How clocks are found: offsets, probes, collectives, none, or auto: "
                               "offsets if given, else probes, else the clocks as they are if no "
                               "collective violates happens-before, else collectives.");
Flag<std::optional<int64_t>> FLAGS_reference_node(
    "reference_node", std::nullopt,
    "The node whose clock is the common one. Default: the one that the offsets are relative to, "
    "else the lowest.");
Flag<std::string> FLAGS_node_ids("node_ids", "",
                                 "Node ids, one per trace. Default: the snapshot pairs' header, "
                                 "else the rank in the file's name, else the last integer in it, "
                                 "else the position.");
Flag<std::string> FLAGS_profile_start_ns(
    "profile_start_ns", "",
    "When profiles began that do not say it (Unix time): one per trace, empty for the others, e.g. "
    ",,1794701451406144825.");
Flag<std::string> FLAGS_ranks(
    "ranks", "", "Ranks, one per device, trace by trace. Default: what the profiles say.");
Flag<double> FLAGS_max_drift_ppm("max_drift_ppm", 100, "How fast two clocks may drift apart.");
Flag<int64_t> FLAGS_min_transfer_ns(
    "min_transfer_ns", 0, "How long a collective takes at least after the last member started it.");
Flag<bool> FLAGS_end_agreement(
    "end_agreement", true,
    "Take the most likely clocks by how the ends of collectives scatter, and state 90 % ranges; "
    "else the middle of what happens-before proves, and that.");
Flag<std::string> FLAGS_clock_prior(
    "clock_prior", "0",
    "Within how much of each other the hosts keep their clocks (NTP, PTP), e.g. 1ms.");
Flag<std::string> FLAGS_clock_logs(
    "clock_logs", "",
    "Logs of what keeps the hosts' clocks, one per trace, empty for those without: chrony's "
    "tracking.log, or what ptp4l and phc2sys print. They go before --clock_prior.");
Flag<std::string> FLAGS_offset_slope(
    "offset_slope", "interpolate",
    "Between offsets: interpolate, or drift_ppm (each sample's own slope).");
Flag<std::string> FLAGS_missing_windows(
    "missing_windows", "skip",
    "Where a node has no offset or probe in a round of the reference: skip that round, or hold its "
    "last offset (with --offset_slope=drift_ppm: its slope, too).");
Flag<int64_t> FLAGS_max_extrapolation_ms(
    "max_extrapolation_ms", 60000,
    "Events farther than this outside the snapshot pairs or offsets are an error.");

Flag<std::string> FLAGS_plane_naming("plane_naming", "viewer",
                                     "viewer: /device:GPU:<n> numbered through and one /host:CPU "
                                     "(of more than 499 devices, beside --output_dir: as "
                                     "node_prefix). "
                                     "node_prefix: /node:<id>/... for every plane. host_node: the "
                                     "same, devices as /device:GPU:Host_Node_<n>, n = node id x "
                                     "devices of a node + device.");
Flag<bool> FLAGS_keep_original("keep_original", false,
                               "XSpaces: keep the events' original times as stats.");
Flag<std::string> FLAGS_output("output", "",
                               "Where the combined profile goes; gzip when it ends in .gz. Kineto "
                               "traces: also .json, or .tar for Perfetto 58 and later.");
Flag<std::string> FLAGS_output_dir(
    "output_dir", "",
    "A folder for all that is made: without other outputs the whole chain is run, and report.html "
    "is the answer. Aligned profiles go to plugins/profile/<run>/, one per node; with --output, "
    "--trace_json, --perfetto or --report these alone.");
Flag<std::string> FLAGS_sweep(
    "sweep", "",
    "Profiles of a sweep of sizes on the same machine, to calibrate the network with: a comma list "
    "of files, folders or globs. Default: the run's own collectives.");
Flag<std::string> FLAGS_baseline(
    "baseline", "",
    "Another run to compare with: a folder of profiles, or what combine --output_dir made of one. "
    "The report then begins with what is different.");
Flag<std::string> FLAGS_trace_json(
    "trace_json", "",
    "Writes the combined profile as Chrome trace JSON; gzip when it ends in .gz.");
Flag<std::string> FLAGS_perfetto(
    "perfetto", "", "Writes the combined profile in Perfetto's format; gzip when it ends in .gz.");
Flag<std::string> FLAGS_report("report", "", "Also writes a page (HTML) about what was done.");
Flag<std::string> FLAGS_stages(
    "stages", "",
    "Run only some stages of the whole chain, a comma list: align (clocks, combined profile; "
    "always), chakra (execution traces), path (critical path, blame, what-if), simulate "
    "(calibration, simulated against measured), report. Default: all.");
Flag<bool> FLAGS_validate(
    "validate", false,
    "Read the written files back and exit with 1 when a collective violates happens-before.");

absl::StatusOr<AlignmentOptions> AlignmentFlags() {
  AlignmentOptions options;
  ASSIGN_OR_RETURN(options.method, ParseAlignmentMethod(FLAGS_method.value()));
  ASSIGN_OR_RETURN(options.slope, OffsetSamples::ParseSlope(FLAGS_offset_slope.value()));
  ASSIGN_OR_RETURN(options.hold_last_offset,
                   NamedValue<bool>(FLAGS_missing_windows, {{"skip", false}, {"hold", true}}));
  options.max_drift_ppm = FLAGS_max_drift_ppm.value();
  ASSIGN_OR_RETURN(options.min_transfer_ps, ScaledValue(FLAGS_min_transfer_ns, 1000));
  options.end_agreement = FLAGS_end_agreement.value();
  absl::Duration prior;
  if (!absl::ParseDuration(FLAGS_clock_prior.value(), &prior) || prior < absl::ZeroDuration() ||
      prior > absl::Hours(1)) {
    return InvalidArgument("--clock_prior=", FLAGS_clock_prior.value(),
                           " is no time up to an hour; expected e.g. 1ms or 200us");
  }
  options.clock_prior_ps = absl::ToInt64Nanoseconds(prior) * 1000;
  return options;
}

// Returns the logs of clocks, item by item: processes of one host share one, others have none.
absl::StatusOr<std::vector<std::string>> ClockLogs() {
  std::vector<std::string> logs;
  for (const absl::string_view item : absl::StrSplit(FLAGS_clock_logs.value(), ',')) {
    if (item.empty()) {
      logs.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                     ExpandPaths(FileSystem::Posix(), std::string(item), {UserDirectory(), {}}));
    logs.insert(logs.end(), paths.begin(), paths.end());
  }
  return logs;
}

// Finds what the flags name.
absl::StatusOr<RunFiles> FindCombineFiles() {
  const std::string run_dir = FLAGS_run_dir.value();
  if (run_dir.empty() == FLAGS_traces.value().empty()) {
    return InvalidArgument("give either --run_dir or --traces, e.g. --traces='rank*.xplane.pb'");
  }
  RunFiles files;
  RunFilesOptions options;
  options.find_snapshots = FLAGS_snapshots.value().empty();
  options.find_offsets = FLAGS_offsets.value().empty();
  options.find_probes = FLAGS_probes.value().empty();
  if (!run_dir.empty()) {
    ASSIGN_OR_RETURN(files, FindRunFiles(FileSystem::Posix(), UserPath(run_dir), options));
  } else {
    ASSIGN_OR_RETURN(files.traces, UserProfiles(FLAGS_traces, "run/"));
  }
  // What is named wins over what was found.
  if (!FLAGS_snapshots.value().empty()) {
    ASSIGN_OR_RETURN(files.snapshots, UserFiles(FLAGS_snapshots, {}, "run/"));
  }
  if (!FLAGS_clock_logs.value().empty()) {
    ASSIGN_OR_RETURN(files.clock_logs, ClockLogs());
  }
  if (!FLAGS_offsets.value().empty()) files.offsets = UserPath(FLAGS_offsets);
  if (!FLAGS_probes.value().empty()) {
    ASSIGN_OR_RETURN(files.probes, UserFiles(FLAGS_probes, {".jsonl", ".jsonl.gz"}, "run/"));
  }
  return files;
}

absl::StatusOr<CombineRequest> RequestFlags() {
  RETURN_IF_ERROR(UseCollectiveKernels());
  CombineRequest request;
  request.input = UserInputOptions();
  ASSIGN_OR_RETURN(request.files, FindCombineFiles());
  ASSIGN_OR_RETURN(request.node_ids, ListedNumbers(FLAGS_node_ids));
  ASSIGN_OR_RETURN(request.profile_start_ns, ListedOrAbsent(FLAGS_profile_start_ns));
  ASSIGN_OR_RETURN(request.ranks, ListedNumbers(FLAGS_ranks));
  ASSIGN_OR_RETURN(request.alignment, AlignmentFlags());
  request.reference_node = FLAGS_reference_node.value();
  ASSIGN_OR_RETURN(request.max_extrapolation_ns, ScaledValue(FLAGS_max_extrapolation_ms, 1000000));
  ASSIGN_OR_RETURN(
      request.naming,
      NamedValue<PlaneNaming>(FLAGS_plane_naming, {{"viewer", PlaneNaming::kViewer},
                                                   {"node_prefix", PlaneNaming::kNodePrefix},
                                                   {"host_node", PlaneNaming::kHostNode}}));
  request.keep_original = FLAGS_keep_original.value();
  request.output = UserPath(FLAGS_output);
  request.output_dir = UserPath(FLAGS_output_dir);
  std::vector<std::string> folders = absl::StrSplit(FLAGS_traces.value(), ',', absl::SkipEmpty());
  folders.push_back(FLAGS_run_dir.value());
  for (const std::string& folder : folders) {
    std::error_code error;
    if (!std::filesystem::equivalent(UserPath(folder), request.output_dir, error)) continue;
    return InvalidArgument("--output_dir=", request.output_dir,
                           " is the folder of the run: the next time what is made would be taken "
                           "for its profiles; give another, e.g. --output_dir=",
                           request.output_dir, "/meridian");
  }
  request.trace_json = UserPath(FLAGS_trace_json);
  request.perfetto = UserPath(FLAGS_perfetto);
  request.validate = FLAGS_validate.value();
  return request;
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
         !FLAGS_perfetto.given() && !FLAGS_report.given();
}

absl::StatusOr<ChainRequest> ChainFlags() {
  FileSystem& files = FileSystem::Posix();
  ChainRequest request;
  ASSIGN_OR_RETURN(request.combine, RequestFlags());
  request.output_dir = UserPath(FLAGS_output_dir);
  request.combine.output_dir.clear();
  request.command = absl::StrCat("combine ", absl::StrJoin(ThisCall().arguments, " "));
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
                           "collectives are used");
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
  // What another command says more about is told here, too.
  for (const std::string& note : report.notes()) {
    if (!absl::StrContains(note, "validate_collectives --")) continue;
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  for (const CombinedOutput& output : report.combine().outputs()) {
    if (output.kind() != "report") continue;
    absl::StrAppend(&text, "\nreport: ", Printable(output.path()), "\n");
  }
  return text;
}

absl::StatusOr<int> CombineWhole(ChainRequest request) {
  request.version = std::string(Version());
  ASSIGN_OR_RETURN(const std::optional<double> max_regression, MaxRegression());
  std::optional<RunReport> baseline;
  if (FLAGS_baseline.given()) {
    if (!request.stages.empty() && request.stages.count("path") == 0) {
      return InvalidArgument("--baseline needs the stage path: add it to --stages");
    }
    RETURN_IF_ERROR(CheckApart(UserPath(FLAGS_baseline), request.output_dir));
    ASSIGN_OR_RETURN(baseline, ComparedRunReport(UserPath(FLAGS_baseline)));
    request.baseline = &*baseline;
  } else if (max_regression.has_value()) {
    return InvalidArgument("--max_regression needs a run to compare with: give --baseline");
  }
  ASSIGN_OR_RETURN(const RunReport report, RunChain(FileSystem::Posix(), request));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report.combine()) : FormatChain(report)));
  const bool violated =
      FLAGS_validate.value() && report.combine().happens_before().violations_after() > 0;
  return violated ? kExitCheckFailed : ComparisonExit(report.comparison(), max_regression);
}

// What is not known is shown as such.
constexpr char kUnknown[] = "?";

std::string Microseconds(int64_t ns) {
  return absl::StrFormat("%.3f", static_cast<double>(ns) * 1e-3);
}

std::string Drift(const CombinedNode& node) {
  if (!node.has_drift_ppm()) return kUnknown;
  if (!node.has_drift_uncertainty_ppm()) return absl::StrFormat("%.3f", node.drift_ppm());
  return absl::StrFormat("%.3f +- %.3f", node.drift_ppm(), node.drift_uncertainty_ppm());
}

std::string NodesText(const CombineReport& report) {
  TextTable table({">node", "host", "ranks", "method", ">offset us", ">+- us", ">certified us",
                   ">drift ppm", ">events", ">moved by us"});
  for (const CombinedNode& node : report.nodes()) {
    table.AddRow(
        {absl::StrCat(node.node_id()), FirstCharacters(node.hostname(), 24),
         FirstCharacters(RangesText({node.ranks().begin(), node.ranks().end()}), 16), node.method(),
         node.has_offset_ns() ? Microseconds(node.offset_ns()) : kUnknown,
         node.has_uncertainty_ns() ? Microseconds(node.uncertainty_ns()) : kUnknown,
         node.has_certified_uncertainty_ns() ? Microseconds(node.certified_uncertainty_ns())
                                             : kUnknown,
         Drift(node), WithThousands(node.events()), Microseconds(node.max_correction_ns())});
  }
  return table.ToString();
}

std::string RanksText(const CombineReport& report) {
  TextTable table(
      {">rank", ">node", ">last to start", ">of", ">others waited ms", ">waited itself"});
  constexpr int kMaxRanks = 8;
  for (int i = 0; i < report.ranks_size() && i < kMaxRanks; ++i) {
    const CombinedRank& rank = report.ranks(i);
    table.AddRow({absl::StrCat(rank.rank()), absl::StrCat(rank.node_id()),
                  WithThousands(rank.last()), WithThousands(rank.collectives()),
                  absl::StrFormat("%.3f", rank.caused_wait_ms()),
                  report.wall_ms() > 0
                      ? absl::StrFormat("%.1f %%", 100 * rank.waited_ms() / report.wall_ms())
                      : kUnknown});
  }
  std::string text = table.ToString();
  if (report.ranks_size() > kMaxRanks) {
    absl::StrAppend(&text, "and ", report.ranks_size() - kMaxRanks, " more, who caused less\n");
  }
  return text;
}

std::string FormatCombineReport(const CombineReport& report) {
  const HappensBeforeSummary& check = report.happens_before();
  std::string text =
      absl::StrCat(report.nodes_size(), " node(s) on the clock of node ", report.reference_node(),
                   ", method ", report.method(), "\n\n", NodesText(report), "\n");
  absl::StrAppend(&text, "happens-before: ", WithThousands(check.violations_before()),
                  " violations before, ", WithThousands(check.violations_after()), " after, in ",
                  WithThousands(check.checked()), " collectives checked (", check.checked_on(),
                  ")");
  if (check.incomplete() > 0) {
    absl::StrAppend(&text, "; ", WithThousands(check.incomplete()), " of ",
                    WithThousands(check.instances()), " lack some of their ranks");
  }
  if (report.steps_on_all_ranks() < report.steps()) {
    absl::StrAppend(&text, "; ", report.steps_on_all_ranks(), " of ", report.steps(),
                    " steps are on all ranks");
  }
  absl::StrAppend(&text, "\n");
  if (report.ranks_size() > 1) absl::StrAppend(&text, "\n", RanksText(report));
  if (report.outputs_size() > 0) absl::StrAppend(&text, "\n");
  for (const CombinedOutput& output : report.outputs()) {
    absl::StrAppend(&text, output.kind(), ": ", Printable(output.path()), " (",
                    WithThousands(output.bytes()), " bytes)\n");
  }
  if (report.notes_size() > 0) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
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
  for (const Flag<std::string>* flag :
       {&FLAGS_sweep, &FLAGS_stages, &FLAGS_baseline, &FLAGS_max_regression}) {
    if (!flag->given()) continue;
    return InvalidArgument("--", flag->name(),
                           " is for the whole chain: give --output_dir, and no other outputs");
  }
  ASSIGN_OR_RETURN(CombineRequest request, RequestFlags());
  const std::string html = UserPath(FLAGS_report);
  request.other_outputs = {html};
  OutputFiles outputs(FileSystem::Posix());
  ASSIGN_OR_RETURN(CombineReport report, CombineRun(FileSystem::Posix(), request, outputs));
  if (!html.empty()) {
    RunReport page = AlignmentReport(
        report, request.files.name.empty() ? "Combined profile" : request.files.name);
    BoundSteps(&page);
    RETURN_IF_ERROR(outputs.WriteText("report", html, RunReportHtml(page)));
    AddOutput(outputs.files().back(), &report);
  }
  RETURN_IF_ERROR(outputs.Commit());
  const bool violated = request.validate && report.happens_before().violations_after() > 0;
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
           "combine --run_dir=tuesday/ --baseline=monday/ --output_dir=out/ --max_regression=5%",
           "combine --run_dir=logs/ --output=combined.xplane.pb --validate",
           "combine --traces='rank*.xplane.pb' --method=collectives --output=combined.xplane.pb"},
          {&FLAGS_run_dir,
           &FLAGS_traces,
           &FLAGS_snapshots,
           &FLAGS_offsets,
           &FLAGS_probes,
           &FLAGS_method,
           &FLAGS_reference_node,
           &FLAGS_node_ids,
           &FLAGS_profile_start_ns,
           &FLAGS_ranks,
           &FLAGS_max_drift_ppm,
           &FLAGS_min_transfer_ns,
           &FLAGS_end_agreement,
           &FLAGS_clock_prior,
           &FLAGS_clock_logs,
           &FLAGS_offset_slope,
           &FLAGS_missing_windows,
           &FLAGS_max_extrapolation_ms,
           &FLAGS_plane_naming,
           &FLAGS_keep_original,
           &FLAGS_output,
           &FLAGS_output_dir,
           &FLAGS_trace_json,
           &FLAGS_perfetto,
           &FLAGS_report,
           &FLAGS_stages,
           &FLAGS_validate,
           &FLAGS_sweep,
           &FLAGS_baseline,
           &FLAGS_max_regression,
           &FLAGS_collective_kernels},
          Combine};
}

}  // namespace meridian
