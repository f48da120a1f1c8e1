// critical_path: what delays the step.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph_file.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/report/path_overlay.h"
#include "critical_path/report/path_report.h"
#include "critical_path/report/path_report.pb.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "tools/profiles.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/number_range.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace("trace", "", "The trace of one rank: Kineto's JSON, plain or gzip.");
Flag<std::string> FLAGS_traces(
    "traces", "",
    "The traces of a job's ranks, joined where they wait for each other: XSpaces, one combined "
    "XSpace, Kineto's JSON, tables, databases of nsys and others (docs/formats.md); a comma list "
    "of "
    "files, folders or globs.");
Flag<std::string> FLAGS_et(
    "et", "", "Chakra traces instead of --traces: the prefix of PREFIX.<rank>.et, or one file.");
Flag<std::string> FLAGS_host_traces("host_traces", "",
                                    "Execution traces of PyTorch, one for each Kineto trace, in "
                                    "the same order: tells what device work could be reordered.");
Flag<std::string> FLAGS_rank(
    "rank", "",
    "With --traces or --et: the path of this rank alone; waiting for others is told apart.");
Flag<bool> FLAGS_allow_violations("allow_violations", false,
                                  "With --traces: goes on when the clocks disagree, that is, when "
                                  "collectives end before they began elsewhere.");
Flag<std::string> FLAGS_annotation(
    "annotation", "",
    "Looks at an annotation whose name contains this, e.g. ProfilerStep, instead of at the whole "
    "trace. Steps of XSpaces and Chakra traces are called NAME#NUMBER.");
Flag<std::string> FLAGS_instance(
    "instance", "0",
    "Which of the annotation's occurrences, from 0: N, or A..B for several and what is between.");
Flag<bool> FLAGS_hta_compatible(
    "hta_compatible", false,
    "Gives the numbers of Holistic Trace Analysis 0.6.1, mistakes included.");
Flag<bool> FLAGS_zero_weight_launch_edges(
    "zero_weight_launch_edges", false,
    "With --hta_compatible: adds launch edges without time to kernels that have none. Otherwise "
    "all launch edges are there anyway.");
Flag<std::string> FLAGS_data_load_events("data_load_events", "",
                                         "Parts of names of events that load data: a comma list.");
Flag<std::string> FLAGS_overlay("overlay", "",
                                "Writes the trace with the path drawn into it, or a timeline of "
                                "the path when there is no --trace: a file (compressed when it "
                                "ends in .gz), or a folder for overlaid_critical_path_<trace>.");
Flag<bool> FLAGS_only_critical(
    "only_critical", true,
    "Leaves events out of the overlay that are not on the path, but for annotations.");
Flag<bool> FLAGS_all_edges("all_edges", false,
                           "Draws all edges of the graph into the overlay, and keeps all events.");
Flag<std::string> FLAGS_save(
    "save", "", "Writes the graph to this file (compressed when it ends in .gz), for --restore.");
Flag<std::string> FLAGS_restore("restore", "",
                                "Reads the graph from a file that --save wrote instead of from a "
                                "trace; --trace is then what --overlay draws into.");
Flag<std::string> FLAGS_what_if(
    "what_if", "",
    "Runs the schedule again with these edits (docs/what_if.md), and compares: scale|set "
    "CONDITIONS FACTOR|DURATION; level rank=N. Conditions: name=\"TEXT\", name=~\"RE2\", within=, "
    "category=, rank=, with=N, event=N, or all.");

absl::StatusOr<InputFile> Open(const std::string& path) {
  return InputFile::Open(FileSystem::Posix(), path, UserInputOptions());
}

absl::StatusOr<WindowChoice> ChosenWindow() {
  WindowChoice window;
  window.annotation = FLAGS_annotation.value();
  const std::string text = FLAGS_instance.value();
  const std::optional<NumberRange> instances = ParseNumberRange(text);
  if (!instances.has_value() || instances->first < 0) {
    return InvalidArgument("--instance: '", text,
                           "' is no instance; expected a number from 0 or a range, e.g. 3 or 1..4");
  }
  window.instances = *instances;
  return window;
}

bool HasTraces() { return FLAGS_traces.given() || FLAGS_run_dir.given(); }

bool HasJob() { return HasTraces() || FLAGS_et.given(); }

absl::StatusOr<JobInput> FindJob() {
  JobInput input;
  input.files = UserInputOptions();
  input.et_prefix = UserPath(FLAGS_et);
  input.data_load_events = absl::StrSplit(FLAGS_data_load_events.value(), ',', absl::SkipEmpty());
  if (HasTraces()) {
    ASSIGN_OR_RETURN(input.traces, UserProfiles(FLAGS_traces, "run/"));
  }
  if (!FLAGS_host_traces.given()) return input;
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   UserFiles(FLAGS_host_traces, {".json", ".json.gz"}, "'et_*.json.gz'"));
  const size_t profiles = HasTraces() ? input.traces.size() : 1;
  if (paths.size() != profiles) {
    return InvalidArgument("--host_traces names ", paths.size(), " execution traces for ", profiles,
                           " profiles; expected one for each");
  }
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(InputFile file, Open(path));
    input.host_traces.push_back(std::move(file));
  }
  return input;
}

absl::StatusOr<TraceAnalysis> AnalyzeRanks(const JobInput& input) {
  JobOptions options;
  ASSIGN_OR_RETURN(options.window, ChosenWindow());
  const std::string rank = FLAGS_rank.value();
  int64_t number = 0;
  if (!rank.empty() && (!absl::SimpleAtoi(rank, &number) || number < 0)) {
    return InvalidArgument("--rank=", rank, " is no rank; expected e.g. --rank=3");
  }
  if (!rank.empty()) options.rank = number;
  options.allow_violations = FLAGS_allow_violations.value();
  return AnalyzeJob(FileSystem::Posix(), input,
                    WithProgress(options, "reading", input.traces.size()));
}

absl::StatusOr<TraceAnalysis> Analyze(const JobInput& input) {
  TraceAnalysisOptions options;
  ASSIGN_OR_RETURN(options.window, ChosenWindow());
  options.hta_compatible = FLAGS_hta_compatible.value();
  options.zero_weight_launch_edges = FLAGS_zero_weight_launch_edges.value();
  options.data_load_events = absl::StrSplit(FLAGS_data_load_events.value(), ',', absl::SkipEmpty());
  RETURN_IF_ERROR(CheckIsTraceJson(UserPath(FLAGS_trace), "give others with --traces"));
  if (!input.host_traces.empty()) options.host_trace = &input.host_traces[0];
  ASSIGN_OR_RETURN(const InputFile file, Open(UserPath(FLAGS_trace)));
  return AnalyzeTraceJson(file.bytes(), file.path(), options);
}

absl::StatusOr<TraceAnalysis> Restore() {
  ASSIGN_OR_RETURN(const InputFile file, Open(UserPath(FLAGS_restore)));
  return Annotate(ParseGraph(file.bytes()), file.path());
}

constexpr char kEditsSource[] = "--what_if";

// Before the trace is read, which takes longest.
absl::StatusOr<std::vector<WhatIfEdit>> ReadEdits() {
  if (FLAGS_what_if.value().empty()) return std::vector<WhatIfEdit>();
  return Annotate(ParseWhatIfEdits(FLAGS_what_if.value()), kEditsSource);
}

// Puts the edited graph and its path in the place of the measured one; without edits all stays
// as measured. Returns the report.
absl::StatusOr<PathReport> RunEdits(const std::vector<WhatIfEdit>& edits, TraceAnalysis* analysis,
                                    CriticalPath* path) {
  const PathReport measured = ReportPath(analysis->source, analysis->graph, *path);
  if (edits.empty()) return measured;
  ASSIGN_OR_RETURN(WhatIfResult result, Annotate(RunWhatIf(analysis->graph, *path,
                                                           analysis->source.hta_compatible, edits),
                                                 kEditsSource));
  PathReport report = ReportPath(analysis->source, result.edited.graph, result.path);
  AddWhatIf(edits, result, measured, &report);
  analysis->graph = std::move(result.edited.graph);
  *path = std::move(result.path);
  return report;
}

// A folder gets a file of the trace's name.
std::string OverlayPath() {
  const std::string path = UserPath(FLAGS_overlay);
  const absl::StatusOr<FileKind> kind = FileSystem::Posix().Kind(path);
  if (!kind.ok() || *kind != FileKind::kDirectory) return path;
  const std::string trace = FLAGS_trace.value();
  return absl::StrCat(path, "/", OverlayFileName(trace.empty() ? "job.json.gz" : trace));
}

// A Kineto trace is drawn into; what comes from elsewhere, or has other times now, gets a timeline
// of its own. (HTA's what-if leaves the times as they are.)
absl::Status WriteOverlayFile(const TraceAnalysis& analysis, const CriticalPath& path,
                              OutputFiles* outputs) {
  OverlayOptions options;
  options.only_critical = FLAGS_only_critical.value();
  options.all_edges = FLAGS_all_edges.value();
  const bool is_edited = !FLAGS_what_if.value().empty() && !analysis.source.hta_compatible;
  if (FLAGS_trace.value().empty() || is_edited) {
    return outputs->Write("overlay", OverlayPath(), [&](ByteSink& sink) {
      return WriteTimelineOverlay(analysis.graph, path, options, &sink);
    });
  }
  ASSIGN_OR_RETURN(const InputFile trace, Open(UserPath(FLAGS_trace)));
  return outputs->Write("overlay", OverlayPath(), [&](ByteSink& sink) {
    return Annotate(WriteOverlay(trace.bytes(), analysis.graph, path, options, &sink),
                    trace.path());
  });
}

absl::Status WriteFiles(const TraceAnalysis& analysis, const CriticalPath& path) {
  OutputFiles outputs(FileSystem::Posix());
  const std::string save = UserPath(FLAGS_save);
  if (!save.empty()) {
    RETURN_IF_ERROR(
        outputs.WriteText("save", save, SerializeGraph(analysis.source, analysis.graph)));
  }
  if (!FLAGS_overlay.value().empty()) RETURN_IF_ERROR(WriteOverlayFile(analysis, path, &outputs));
  return outputs.Commit();
}

// Before the traces are read, which takes longest.
absl::Status CheckPaths(const JobInput& job) {
  std::vector<std::string> inputs = job.traces;
  for (const InputFile& file : job.host_traces) inputs.push_back(file.path());
  if (!job.et_prefix.empty()) {
    ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(FileSystem::Posix(), job.et_prefix));
    for (const EtFile& file : files.files) inputs.push_back(file.path);
    inputs.push_back(CommGroupsPath(job.et_prefix));
  }
  inputs.push_back(UserPath(FLAGS_trace));
  inputs.push_back(UserPath(FLAGS_restore));
  return CheckOutputPaths(
      inputs, {UserPath(FLAGS_save), FLAGS_overlay.value().empty() ? "" : OverlayPath()});
}

// Flags that say nothing together.
absl::Status CheckFlags() {
  const int inputs =
      HasTraces() + FLAGS_et.given() + (FLAGS_trace.given() || FLAGS_restore.given());
  if (inputs > 1) {
    return InvalidArgument(
        "--trace (or --restore), --traces and --et name different inputs; give one of them");
  }
  RETURN_IF_ERROR(ChosenWindow().status());
  if (FLAGS_restore.given() && (FLAGS_annotation.given() || FLAGS_instance.given() ||
                                FLAGS_data_load_events.given() || FLAGS_hta_compatible.given())) {
    return InvalidArgument(
        "a saved graph is of the window and the mode that it was made with; --annotation, "
        "--instance, --data_load_events and --hta_compatible go with a trace");
  }
  if (FLAGS_instance.given() && !FLAGS_annotation.given()) {
    return InvalidArgument("--instance counts the occurrences of --annotation; give that, too");
  }
  if (!HasJob()) {
    if (!FLAGS_rank.given()) return absl::OkStatus();
    return InvalidArgument("--rank chooses from --traces or --et");
  }
  if (FLAGS_hta_compatible.value()) {
    return InvalidArgument("HTA knows one rank's Kineto trace: --hta_compatible goes with --trace");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> FindPath() {
  const bool restores = !FLAGS_restore.value().empty();
  if (!restores && !HasJob() && FLAGS_trace.value().empty()) {
    return InvalidArgument(
        "--trace names no file; expected e.g. --trace=rank0.pt.trace.json.gz, or --traces=run/ for "
        "several ranks");
  }
  RETURN_IF_ERROR(CheckFlags());
  RETURN_IF_ERROR(UseCollectiveKernels());
  ASSIGN_OR_RETURN(const JobInput job, FindJob());
  RETURN_IF_ERROR(CheckPaths(job));
  ASSIGN_OR_RETURN(const std::vector<WhatIfEdit> edits, ReadEdits());
  ASSIGN_OR_RETURN(TraceAnalysis analysis, restores   ? Restore()
                                           : HasJob() ? AnalyzeRanks(job)
                                                      : Analyze(job));
  ASSIGN_OR_RETURN(CriticalPath path,
                   Annotate(FindLongestPath(analysis.graph),
                            restores ? UserPath(FLAGS_restore) : analysis.source.trace));
  ASSIGN_OR_RETURN(PathReport report, RunEdits(edits, &analysis, &path));
  if (FLAGS_host_traces.given()) {
    RETURN_IF_ERROR(Annotate(AddReordering(analysis.graph, path, &report), "--host_traces"));
  }
  RETURN_IF_ERROR(WriteFiles(analysis, path));
  return PrintReport(report, FormatPathReport);
}

}  // namespace

Command CriticalPathCommand() {
  return {"critical_path",
          "Finds the chain of host and device work that a step had to wait for, and what its time "
          "is spent on.",
          {"critical_path --trace=rank0.pt.trace.json.gz --annotation=ProfilerStep --instance=1",
           "critical_path --trace=trace.json.gz --overlay=.",
           "critical_path --trace=trace.json.gz --hta_compatible --json",
           "critical_path --traces=run/ --annotation=train --instance=2..4 --json",
           "critical_path --trace=trace.json.gz --what_if='scale name=~\"AllReduce\" 0.5'"},
          {&FLAGS_trace, &FLAGS_traces, &FLAGS_run_dir, &FLAGS_et, &FLAGS_host_traces, &FLAGS_rank,
           &FLAGS_allow_violations, &FLAGS_annotation, &FLAGS_instance, &FLAGS_hta_compatible,
           &FLAGS_zero_weight_launch_edges, &FLAGS_data_load_events, &FLAGS_overlay,
           &FLAGS_only_critical, &FLAGS_all_edges, &FLAGS_save, &FLAGS_restore, &FLAGS_what_if,
           &FLAGS_collective_kernels},
          FindPath};
}

}  // namespace meridian
