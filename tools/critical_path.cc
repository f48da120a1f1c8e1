// critical_path: what delays the step.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "critical_path/longest_path.h"
#include "critical_path/path_graph_file.h"
#include "critical_path/path_overlay.h"
#include "critical_path/path_report.h"
#include "critical_path/queue_length.h"
#include "critical_path/trace_analysis.h"
#include "critical_path/what_if/reorder_suggestions.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"
#include "critical_path/what_if/what_if_report.h"
#include "tools/command.h"
#include "tools/pipeline/output_files.h"
#include "xla_profiler/util/byte_sink.h"
#include "xla_profiler/util/file_system.h"
#include "xla_profiler/util/input_file.h"
#include "xla_profiler/util/report_json.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/status_util.h"

ABSL_FLAG(std::string, trace, "", "The trace of one rank: Kineto's JSON, plain or gzip.");
ABSL_FLAG(std::string, annotation, "",
          "Looks at an annotation whose name contains this, e.g. ProfilerStep, instead of at the "
          "whole trace.");
ABSL_FLAG(std::string, instance, "0",
          "Which of the annotation's occurrences, from 0: N, or A..B for several and what is "
          "between.");
ABSL_FLAG(bool, hta_compatible, false,
          "Gives the numbers of Holistic Trace Analysis 0.6.1, mistakes included.");
ABSL_FLAG(bool, zero_weight_launch_edges, false,
          "With --hta_compatible: adds launch edges without time to kernels that have none. "
          "Otherwise all launch edges are there anyway.");
ABSL_FLAG(std::string, data_load_events, "",
          "Parts of names of events that load data: a comma list.");
ABSL_FLAG(std::string, overlay, "",
          "Writes the trace with the path drawn into it: a file (compressed when it ends in .gz), "
          "or a folder for overlaid_critical_path_<trace>.");
ABSL_FLAG(bool, only_critical, true,
          "Leaves events out of the overlay that are not on the path, but for annotations.");
ABSL_FLAG(bool, all_edges, false,
          "Draws all edges of the graph into the overlay, and keeps all events.");
ABSL_FLAG(std::string, csv, "", "Writes the path, one line for each edge, to this file.");
ABSL_FLAG(std::string, queue_lengths, "",
          "Writes how much work each stream was behind, over time, to this file (CSV).");
ABSL_FLAG(std::string, save, "",
          "Writes the graph to this file (compressed when it ends in .gz), for --restore.");
ABSL_FLAG(std::string, restore, "",
          "Reads the graph from a file that --save wrote instead of from a trace; --trace is then "
          "needed for --overlay only.");
ABSL_FLAG(std::string, what_if, "",
          "Runs the schedule again with these edits (docs/what_if.md), or @FILE with one per line, "
          "and compares: scale|set CONDITIONS FACTOR|DURATION; remove CONDITIONS; add \"NAME\" "
          "DURATION after CONDITIONS; link|unlink CONDITIONS to CONDITIONS; move CONDITIONS "
          "before|after CONDITIONS; overlap CONDITIONS [until CONDITIONS]; level rank=N. "
          "Conditions: name=\"TEXT\", name=~\"RE2\", within=, category=, rank=, link=A->B, "
          "process=, thread=, stream=, event=, or all.");
ABSL_FLAG(bool, suggest_reorderings, false,
          "Tries other orders of the streams' work, after the edits of --what_if if there are any, "
          "and lists those that make the path shorter.");

namespace meridian {
namespace {

absl::StatusOr<InputFile> OpenTrace() {
  return InputFile::Open(FileSystem::Posix(), UserPath(absl::GetFlag(FLAGS_trace)),
                         UserInputOptions());
}

absl::StatusOr<TraceAnalysis> Analyze() {
  TraceAnalysisOptions options;
  options.window.annotation = absl::GetFlag(FLAGS_annotation);
  absl::StatusOr<InstanceRange> instances = ParseInstanceRange(absl::GetFlag(FLAGS_instance));
  if (!instances.ok()) return Annotate(instances.status(), "--instance");
  options.window.instances = *instances;
  options.hta_compatible = absl::GetFlag(FLAGS_hta_compatible);
  options.zero_weight_launch_edges = absl::GetFlag(FLAGS_zero_weight_launch_edges);
  options.data_load_events =
      absl::StrSplit(absl::GetFlag(FLAGS_data_load_events), ',', absl::SkipEmpty());
  ASSIGN_OR_RETURN(const InputFile file, OpenTrace());
  return AnalyzeTraceJson(file.bytes(), file.path(), options);
}

absl::StatusOr<TraceAnalysis> Restore() {
  if (!absl::GetFlag(FLAGS_queue_lengths).empty()) {
    return absl::InvalidArgumentError(
        "--queue_lengths needs the trace; a saved graph does not hold them");
  }
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), UserPath(absl::GetFlag(FLAGS_restore)),
                                   UserInputOptions()));
  absl::StatusOr<SavedGraph> saved = ParseGraph(file.bytes());
  if (!saved.ok()) return Annotate(saved.status(), file.path());
  TraceAnalysis analysis;
  analysis.source = std::move(saved->source);
  analysis.graph = std::move(saved->graph);
  return analysis;
}

absl::StatusOr<std::vector<WhatIfEdit>> ParseEdits(absl::string_view text,
                                                   absl::string_view source) {
  absl::StatusOr<std::vector<WhatIfEdit>> edits = ParseWhatIfEdits(text);
  return edits.ok() ? std::move(edits) : Annotate(edits.status(), source);
}

// Before the trace is read, which takes longest.
absl::StatusOr<std::vector<WhatIfEdit>> ReadEdits() {
  const std::string what_if = absl::GetFlag(FLAGS_what_if);
  if (what_if.empty()) return std::vector<WhatIfEdit>();
  absl::string_view path = what_if;
  if (!absl::ConsumePrefix(&path, "@")) return ParseEdits(what_if, "--what_if");
  ASSIGN_OR_RETURN(
      const InputFile file,
      InputFile::Open(FileSystem::Posix(), UserPath(std::string(path)), UserInputOptions()));
  return ParseEdits(file.bytes(), file.path());
}

// Puts the edited schedule and its path in the place of the measured one. Returns the report.
absl::StatusOr<PathReport> RunEdits(const std::vector<WhatIfEdit>& edits, TraceAnalysis* analysis,
                                    CriticalPath* path) {
  const PathReport measured = ReportPath(analysis->source, analysis->graph, *path);
  const bool suggests = absl::GetFlag(FLAGS_suggest_reorderings);
  if (edits.empty() && !suggests) return measured;
  absl::StatusOr<WhatIfResult> result =
      RunWhatIf(analysis->graph, *path, analysis->source.hta_compatible, edits);
  if (!result.ok()) return Annotate(result.status(), "--what_if");
  PathReport report = ReportPath(analysis->source, result->schedule.graph, result->path);
  AddWhatIf(edits, *result, measured, &report);
  if (suggests) {
    absl::StatusOr<ReorderSuggestions> suggestions =
        SuggestReorderings(result->schedule, result->path);
    if (!suggestions.ok()) return Annotate(suggestions.status(), "--suggest_reorderings");
    AddSuggestions(result->schedule, *suggestions, &report);
  }
  analysis->graph = std::move(result->schedule.graph);
  *path = std::move(result->path);
  return report;
}

// A folder gets a file of the trace's name.
std::string OverlayPath() {
  const std::string path = UserPath(absl::GetFlag(FLAGS_overlay));
  const absl::StatusOr<FileKind> kind = FileSystem::Posix().Kind(path);
  if (!kind.ok() || *kind != FileKind::kDirectory) return path;
  return absl::StrCat(path, "/", OverlayFileName(absl::GetFlag(FLAGS_trace)));
}

absl::Status WriteOverlayFile(const TraceAnalysis& analysis, const CriticalPath& path,
                              OutputFiles* outputs) {
  if (absl::GetFlag(FLAGS_trace).empty()) {
    return absl::InvalidArgumentError("--overlay needs --trace, the trace to draw into");
  }
  ASSIGN_OR_RETURN(const InputFile trace, OpenTrace());
  OverlayOptions options;
  options.only_critical = absl::GetFlag(FLAGS_only_critical);
  options.all_edges = absl::GetFlag(FLAGS_all_edges);
  return outputs->Write("overlay", OverlayPath(), [&](ByteSink& sink) {
    return Annotate(WriteOverlay(trace.bytes(), analysis.graph, path, options, &sink).status(),
                    trace.path());
  });
}

absl::Status WriteFiles(const TraceAnalysis& analysis, const CriticalPath& path) {
  OutputFiles outputs(FileSystem::Posix());
  const auto write = [&](absl::string_view kind, const std::string& file,
                         absl::string_view contents) {
    return outputs.Write(std::string(kind), UserPath(file),
                         [&](ByteSink& sink) { return sink.Append(contents); });
  };
  const std::string csv = absl::GetFlag(FLAGS_csv);
  if (!csv.empty()) RETURN_IF_ERROR(write("csv", csv, PathCsv(analysis.graph, path)));
  const std::string queues = absl::GetFlag(FLAGS_queue_lengths);
  if (!queues.empty()) {
    RETURN_IF_ERROR(write("queue_lengths", queues, QueueLengthCsv(analysis.queues)));
  }
  const std::string save = absl::GetFlag(FLAGS_save);
  if (!save.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, SerializeGraph(analysis.source, analysis.graph));
    RETURN_IF_ERROR(write("save", save, bytes));
  }
  if (!absl::GetFlag(FLAGS_overlay).empty()) {
    RETURN_IF_ERROR(WriteOverlayFile(analysis, path, &outputs));
  }
  return outputs.Commit();
}

// Before the trace is read, which takes longest.
absl::Status CheckPaths() {
  return CheckOutputPaths(
      {UserPath(absl::GetFlag(FLAGS_trace)), UserPath(absl::GetFlag(FLAGS_restore))},
      {UserPath(absl::GetFlag(FLAGS_csv)), UserPath(absl::GetFlag(FLAGS_queue_lengths)),
       UserPath(absl::GetFlag(FLAGS_save)),
       absl::GetFlag(FLAGS_overlay).empty() ? "" : OverlayPath()});
}

absl::StatusOr<int> FindPath() {
  const bool restores = !absl::GetFlag(FLAGS_restore).empty();
  if (!restores && absl::GetFlag(FLAGS_trace).empty()) {
    return absl::InvalidArgumentError(
        "--trace names no file; expected e.g. --trace=rank0.pt.trace.json.gz");
  }
  RETURN_IF_ERROR(CheckPaths());
  ASSIGN_OR_RETURN(const std::vector<WhatIfEdit> edits, ReadEdits());
  ASSIGN_OR_RETURN(TraceAnalysis analysis, restores ? Restore() : Analyze());
  absl::StatusOr<CriticalPath> path = FindLongestPath(analysis.graph);
  if (!path.ok()) return Annotate(path.status(), analysis.source.trace);
  ASSIGN_OR_RETURN(const PathReport report, RunEdits(edits, &analysis, &*path));
  RETURN_IF_ERROR(WriteFiles(analysis, *path));
  RETURN_IF_ERROR(
      Print(JsonWanted() ? ReportToJson(report) : FormatPathReport(report) + FormatWhatIf(report)));
  return kExitDone;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"critical_path",
       "Finds the chain of host and device work that a step had to wait for, and what its time is "
       "spent on.",
       {"critical_path --trace=rank0.pt.trace.json.gz --annotation=ProfilerStep --instance=1",
        "critical_path --trace=trace.json.gz --overlay=. --csv=path.csv",
        "critical_path --trace=trace.json.gz --hta_compatible --json",
        "critical_path --trace=trace.json.gz --what_if='scale name=~\"AllReduce\" 0.5'"},
       {"trace", "annotation", "instance", "hta_compatible", "zero_weight_launch_edges",
        "data_load_events", "overlay", "only_critical", "all_edges", "csv", "queue_lengths", "save",
        "restore", "what_if", "suggest_reorderings"}},
      argc, argv, meridian::FindPath);
}
