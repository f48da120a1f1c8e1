// chakra_inspect: what is in Chakra traces, what is wrong with them, and other forms of them.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_obfuscator.h"
#include "chakra_export/et_tools/et_summary.h"
#include "chakra_export/et_tools/graph_view.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_et(
    "et", "", "The traces: the PREFIX of PREFIX.<rank>.et[.gz], or one file, plain or gzip.");
Flag<std::string> FLAGS_comm_groups("comm_groups", "",
                                    "JSON file with the ranks of process groups. Default: "
                                    "PREFIX.comm_groups.json, if there is one.");
Flag<bool> FLAGS_stats("stats", false, "Print nodes, edges, bytes and overlap.");
Flag<bool> FLAGS_check(
    "check", false,
    "Print what is wrong, also what ASTRA-sim would abort on; exit with 1 on errors.");
Flag<bool> FLAGS_to_json("to_json", false, "Write all nodes as one JSON document.");
Flag<bool> FLAGS_dot("dot", false,
                     "Write the graph for Graphviz; of small graphs, or of one rank.");
Flag<bool> FLAGS_timeline(
    "timeline", false,
    "Write the nodes as a Chrome trace: as measured, or without start times as replayed.");
Flag<std::string> FLAGS_output("output", "",
                               "Where --to_json, --dot and --timeline write, gzip when it ends in "
                               ".gz. Default: standard output.");
Flag<std::string> FLAGS_diff("diff", "",
                             "Other traces to compare with; exit with 1 if they differ.");
Flag<std::string> FLAGS_obfuscate(
    "obfuscate", "",
    "Prefix of new traces that simulate alike, without names, shapes and other texts.");

// Returns options that read as the user wants it, with a bar that is gone when they are.
EtGraphReaderOptions ReadingOptions() {
  EtGraphReaderOptions options;
  options.input = UserInputOptions();
  options.progress = ShowBytesRead();
  return options;
}

// Neither a file nor a whole set of traces takes the place of those that are read.
absl::Status CheckPaths() {
  ASSIGN_OR_RETURN(const std::string et, RequiredPath(FLAGS_et, "traces", "run/w for run/w.0.et"));
  ASSIGN_OR_RETURN(std::vector<std::string> inputs,
                   FileSystem::Posix().Glob(absl::StrCat(et, ".*")));
  for (const auto* flag : {&FLAGS_et, &FLAGS_diff, &FLAGS_comm_groups}) {
    inputs.push_back(UserPath(*flag));
  }
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {UserPath(FLAGS_output)}));
  if (!FLAGS_obfuscate.given()) return absl::OkStatus();
  return CheckOutputPrefix("--obfuscate", UserPath(FLAGS_obfuscate),
                           {".et", ".et.gz", CommGroupsPath("")}, inputs);
}

absl::StatusOr<EtFiles> InputFiles() {
  return FindEtFiles(FileSystem::Posix(), UserPath(FLAGS_et));
}

absl::StatusOr<CommGroups> InputGroups(const EtFiles& files) {
  const std::string prefix = files.is_prefix ? UserPath(FLAGS_et) : "";
  return FindCommGroups(FileSystem::Posix(), UserPath(FLAGS_comm_groups), prefix);
}

// The graph for pictures of it: what cannot be drawn is left out.
absl::StatusOr<ExecutionGraph> InputGraph() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  EtGraphReaderOptions options = ReadingOptions();
  options.ignore_dangling = true;
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return ReadEtGraph(FileSystem::Posix(), files, options);
}

absl::StatusOr<ChakraReport> SummarizeWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  EtGraphReaderOptions options = ReadingOptions();
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return SummarizeEtFiles(FileSystem::Posix(), files, options, !FLAGS_check.value());
}

absl::StatusOr<int> Inspect() {
  const bool check = FLAGS_check.value(), stats = FLAGS_stats.value();
  ASSIGN_OR_RETURN(const ChakraReport report, SummarizeWithProgress());
  std::string text = stats || !check ? FormatChakraStats(report) : "";
  if (stats == check) text += "\n";
  if (check || !stats) text += FormatChakraProblems(report);
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : text));
  return check && report.errors() > 0 ? kExitCheckFailed : kExitDone;
}

absl::StatusOr<int> ToJson() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  const auto options = ReadingOptions();
  return WriteTo(FLAGS_output, [&](ByteSink* sink) {
    return WriteEtJson(FileSystem::Posix(), files, options, sink);
  });
}

absl::StatusOr<int> ToDot() {
  ASSIGN_OR_RETURN(const ExecutionGraph graph, InputGraph());
  ASSIGN_OR_RETURN(const std::string dot, Annotate(GraphDot(graph), FLAGS_et.value()));
  return WriteTo(FLAGS_output, [&](ByteSink* sink) { return sink->Append(dot); });
}

absl::StatusOr<int> ToTimeline() {
  ASSIGN_OR_RETURN(const ExecutionGraph graph, InputGraph());
  ASSIGN_OR_RETURN(const NodeTimes times,
                   Annotate(MeasuredOrReplayedTimes(graph), FLAGS_et.value()));
  return WriteTo(FLAGS_output,
                 [&](ByteSink* sink) { return WriteGraphTimeline(graph, times, sink); });
}

absl::StatusOr<ChakraDiffReport> DiffWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles first, InputFiles());
  ASSIGN_OR_RETURN(const EtFiles second, FindEtFiles(FileSystem::Posix(), UserPath(FLAGS_diff)));
  return DiffEtFiles(FileSystem::Posix(), first, second, ReadingOptions());
}

absl::StatusOr<int> Diff() {
  ASSIGN_OR_RETURN(ChakraDiffReport report, DiffWithProgress());
  report.set_first(FLAGS_et.value());
  report.set_second(FLAGS_diff.value());
  return PrintReport(report, FormatDiff, report.different() == 0 ? kExitDone : kExitCheckFailed);
}

absl::StatusOr<ChakraWorkloadReport> ObfuscateWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  EtGraphReaderOptions options = ReadingOptions();
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return ObfuscateEtFiles(FileSystem::Posix(), files, options, UserPath(FLAGS_obfuscate));
}

absl::StatusOr<int> Obfuscate() {
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report, ObfuscateWithProgress());
  return PrintReport(report, FormatWorkloadReport);
}

absl::StatusOr<int> RunTask() {
  RETURN_IF_ERROR(CheckPaths());
  return RunOneTask({
      {{&FLAGS_stats, &FLAGS_check}, Inspect, {&FLAGS_comm_groups}},
      {{&FLAGS_to_json}, ToJson, {&FLAGS_output}},
      {{&FLAGS_dot}, ToDot, {&FLAGS_comm_groups, &FLAGS_output}},
      {{&FLAGS_timeline}, ToTimeline, {&FLAGS_comm_groups, &FLAGS_output}},
      {{&FLAGS_diff}, Diff, {}},
      {{&FLAGS_obfuscate}, Obfuscate, {&FLAGS_comm_groups}},
  });
}

}  // namespace

Command ChakraInspectCommand() {
  return {"chakra_inspect",
          "Shows what is in the Chakra traces of a workload and what is wrong with them, draws "
          "them, compares them, and makes anonymous ones. Without a task: statistics and problems.",
          {"chakra_inspect --et=run/w", "chakra_inspect --et=run/w --check --json",
           "chakra_inspect --et=run/w.3.et --dot | dot -Tsvg > rank3.svg",
           "chakra_inspect --et=run/w --timeline --output=w.json.gz",
           "chakra_inspect --et=run/w --obfuscate=public/w"},
          {&FLAGS_et, &FLAGS_comm_groups, &FLAGS_stats, &FLAGS_check, &FLAGS_to_json, &FLAGS_dot,
           &FLAGS_timeline, &FLAGS_output, &FLAGS_diff, &FLAGS_obfuscate},
          RunTask};
}

}  // namespace meridian
