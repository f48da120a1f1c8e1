// chakra_inspect: what is in Chakra traces, what is wrong with them, and other forms of them.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/inspect/chakra_inspector.h"
#include "chakra_export/inspect/chakra_report.pb.h"
#include "chakra_export/inspect/et_check.h"
#include "chakra_export/inspect/et_diff.h"
#include "chakra_export/inspect/et_filter.h"
#include "chakra_export/inspect/et_json.h"
#include "chakra_export/inspect/et_obfuscator.h"
#include "chakra_export/inspect/graph_view.h"
#include "re2/re2.h"
#include "third_party/chakra/et_def.pb.h"
#include "tools/command.h"
#include "tools/commands.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_et(
    "et", "", "The traces: the PREFIX of PREFIX.<rank>.et[.gz], or one file, plain or gzip.");
Flag<std::string> FLAGS_comm_groups(
    "comm_groups", "",
    "JSON file with the ranks of process groups. Default: PREFIX.comm_groups.json, if there "
    "is one.");
Flag<bool> FLAGS_stats("stats", false, "Print nodes, edges, bytes, critical length and overlap.");
Flag<bool> FLAGS_check(
    "check", false,
    "Print what is wrong, also what ASTRA-sim would abort on; exit with 1 on errors.");
Flag<std::string> FLAGS_ignore_rules("ignore_rules", "",
                                     "Rules not to check, e.g. host_node,memory_node.");
Flag<bool> FLAGS_to_json("to_json", false, "Write all nodes as one JSON document.");
Flag<bool> FLAGS_dot("dot", false,
                     "Write the graph for Graphviz; a large one is cut to a neighbourhood.");
Flag<std::string> FLAGS_center(
    "center", "", "With --dot: the node in the middle, as ID or RANK:ID. Default: the longest.");
Flag<int64_t> FLAGS_max_nodes("max_nodes", 200, "With --dot: how many nodes to show at most.");
Flag<bool> FLAGS_timeline(
    "timeline", false,
    "Write the nodes as a Chrome trace: as measured, or without start times as replayed.");
Flag<std::string> FLAGS_output(
    "output", "",
    "Where --to_json, --dot and --timeline write, gzip when it ends in .gz. Default: standard "
    "output.");
Flag<std::string> FLAGS_diff("diff", "",
                             "Other traces to compare with; exit with 1 if they differ.");
Flag<std::string> FLAGS_filter(
    "filter", "",
    "Prefix of new traces with the nodes that --types, --names and --ids choose; what waited "
    "for another node waits for what that one waited for.");
Flag<std::string> FLAGS_types(
    "types", "", "With --filter: types of nodes to keep, e.g. COMP_NODE,COMM_COLL_NODE.");
Flag<std::string> FLAGS_names(
    "names", "",
    "With --filter: regular expression that the names of nodes to keep match somewhere.");
Flag<std::string> FLAGS_ids("ids", "", "With --filter: ids of nodes to keep, FIRST..LAST.");
Flag<std::string> FLAGS_obfuscate(
    "obfuscate", "",
    "Prefix of new traces that simulate alike, without names, shapes and other texts.");
Flag<double> FLAGS_jitter(
    "jitter", 0,
    "With --obfuscate: change durations by up to this share, e.g. 0.05, and drop start times.");
Flag<uint64_t> FLAGS_seed("seed", 0, "With --jitter: another seed, other changes.");

using ::ChakraProtoMsg::Node;

constexpr size_t kOutputBufferBytes = size_t{1} << 20;

// Returns options that read as the user wants it, with a bar that is gone when they are.
template <typename Options>
Options ReadingOptions() {
  Options options;
  options.input = UserInputOptions();
  options.progress = ShowBytesRead();
  return options;
}

// Standard output in large pieces.
class StandardOutput : public ByteSink {
 public:
  absl::Status Append(absl::string_view data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kOutputBufferBytes ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    const absl::Status printed = Print(buffer_);
    buffer_.clear();
    return printed;
  }

 private:
  std::string buffer_;
};

// Calls `write` with where --output says.
absl::Status WriteOutput(const std::function<absl::Status(ByteSink*)>& write) {
  const std::string path = UserPath(FLAGS_output);
  if (path.empty()) {
    StandardOutput output;
    RETURN_IF_ERROR(write(&output));
    return output.Flush();
  }
  OutputFiles outputs(FileSystem::Posix());
  RETURN_IF_ERROR(outputs.Write("output", path, [&](ByteSink& sink) { return write(&sink); }));
  return outputs.Commit();
}

absl::Status CheckPrefix(absl::string_view flag, const std::string& prefix,
                         const std::vector<std::string>& inputs) {
  if (prefix.empty()) return absl::OkStatus();
  return CheckOutputPrefix(flag, UserPath(prefix), {".et", ".et.gz", CommGroupsPath("")}, inputs);
}

// Neither a file nor a whole set of traces takes the place of those that are read.
absl::Status CheckPaths() {
  const std::string et = UserPath(FLAGS_et);
  std::vector<std::string> inputs = {et, UserPath(FLAGS_diff), UserPath(FLAGS_comm_groups)};
  if (!et.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> traces,
                     FileSystem::Posix().Glob(absl::StrCat(et, ".*")));
    inputs.insert(inputs.end(), traces.begin(), traces.end());
  }
  RETURN_IF_ERROR(CheckOutputPaths(inputs, {UserPath(FLAGS_output)}));
  RETURN_IF_ERROR(CheckPrefix("--filter", FLAGS_filter.value(), inputs));
  return CheckPrefix("--obfuscate", FLAGS_obfuscate.value(), inputs);
}

absl::StatusOr<EtFiles> InputFiles() {
  ASSIGN_OR_RETURN(const std::string et, RequiredPath(FLAGS_et, "traces", "run/w for run/w.0.et"));
  return FindEtFiles(FileSystem::Posix(), et);
}

absl::StatusOr<CommGroups> InputGroups(const EtFiles& files) {
  std::string path = UserPath(FLAGS_comm_groups);
  if (path.empty() && files.is_prefix) {
    path = CommGroupsBeside(FileSystem::Posix(), UserPath(FLAGS_et));
  }
  if (path.empty()) return CommGroups();
  return ReadCommGroups(FileSystem::Posix(), path);
}

// The graph for pictures of it: what cannot be drawn is left out.
absl::StatusOr<ExecutionGraph> InputGraph() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  auto options = ReadingOptions<EtGraphReaderOptions>();
  options.ignore_dangling = true;
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return ReadEtGraph(FileSystem::Posix(), files, options);
}

absl::StatusOr<ChakraReport> InspectWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  auto options = ReadingOptions<ChakraInspectOptions>();
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  ASSIGN_OR_RETURN(options.ignored_rules, ParseRules(FLAGS_ignore_rules.value()));
  return InspectChakra(FileSystem::Posix(), files, options);
}

absl::StatusOr<int> Inspect() {
  const bool check = FLAGS_check.value();
  const bool stats = FLAGS_stats.value() || !check;
  ASSIGN_OR_RETURN(const ChakraReport report, InspectWithProgress());
  for (const ChakraProblemReport& problem : report.problems()) {
    // Whoever asked for statistics cannot have any.
    if (!check && problem.rule() == RuleInfo(EtRule::kNoGraph).name) {
      return absl::InvalidArgumentError(problem.message());
    }
  }
  std::string text;
  if (JsonWanted()) {
    text = ReportToJson(report);
  } else {
    if (stats) absl::StrAppend(&text, FormatChakraStats(report));
    if (!FLAGS_stats.value() || check) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", FormatChakraProblems(report));
    }
  }
  RETURN_IF_ERROR(Print(text));
  return check && report.errors() > 0 ? kExitCheckFailed : kExitDone;
}

absl::StatusOr<int> ToJson() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  const auto options = ReadingOptions<EtReaderOptions>();
  RETURN_IF_ERROR(WriteOutput(
      [&](ByteSink* sink) { return WriteEtJson(FileSystem::Posix(), files, options, sink); }));
  return kExitDone;
}

absl::StatusOr<int> ToDot() {
  const int64_t max_nodes = FLAGS_max_nodes.value();
  if (max_nodes < 1) return absl::InvalidArgumentError("--max_nodes must be at least 1");
  ASSIGN_OR_RETURN(const ExecutionGraph graph, InputGraph());
  const CommunicationMatch match(graph);
  std::vector<NodeIndex> nodes;
  if (graph.node_count() > 0) {
    NodeIndex center = LongestNode(graph);
    const std::string wanted = FLAGS_center.value();
    if (!wanted.empty()) {
      const absl::StatusOr<NodeIndex> found = FindGraphNode(graph, wanted);
      if (!found.ok()) return Annotate(found.status(), "--center");
      center = *found;
    }
    nodes = graph.node_count() <= static_cast<size_t>(max_nodes) && wanted.empty()
                ? AllNodes(graph)
                : Neighbourhood(graph, match, center, static_cast<size_t>(max_nodes));
    if (nodes.size() < graph.node_count()) {
      std::fprintf(stderr,
                   "chakra_inspect: %zu of %zu nodes, around %s; see --center, --max_nodes\n",
                   nodes.size(), graph.node_count(), Printable(graph.Describe(center)).c_str());
    }
  }
  RETURN_IF_ERROR(
      WriteOutput([&](ByteSink* sink) { return sink->Append(GraphDot(graph, match, nodes)); }));
  return kExitDone;
}

absl::StatusOr<int> ToTimeline() {
  ASSIGN_OR_RETURN(const ExecutionGraph graph, InputGraph());
  std::optional<NodeTimes> times = MeasuredTimes(graph);
  if (!times.has_value()) {
    const absl::StatusOr<GraphReplay> replay = ReplayAsSimulator(graph, CommunicationMatch(graph));
    if (!replay.ok()) {
      return Annotate(replay.status(),
                      absl::StrCat(FLAGS_et.value(), ": without start times it must be replayed"));
    }
    times = ReplayedTimes(*replay);
  }
  RETURN_IF_ERROR(
      WriteOutput([&](ByteSink* sink) { return WriteGraphTimeline(graph, *times, sink); }));
  return kExitDone;
}

absl::StatusOr<ChakraDiffReport> DiffWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles first, InputFiles());
  ASSIGN_OR_RETURN(const EtFiles second, FindEtFiles(FileSystem::Posix(), UserPath(FLAGS_diff)));
  return DiffEtFiles(FileSystem::Posix(), first, second, ReadingOptions<EtReaderOptions>());
}

absl::StatusOr<int> Diff() {
  ASSIGN_OR_RETURN(ChakraDiffReport report, DiffWithProgress());
  report.set_first(FLAGS_et.value());
  report.set_second(FLAGS_diff.value());
  return PrintReport(report, FormatDiff, AreEqual(report) ? kExitDone : kExitCheckFailed);
}

absl::StatusOr<std::set<int>> ParseTypes(absl::string_view names) {
  std::set<int> types;
  if (names.empty()) return types;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    ChakraProtoMsg::NodeType type;
    if (!ChakraProtoMsg::NodeType_Parse(std::string(name), &type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--types: '", name, "' is no type of node; expected e.g. COMP_NODE, COMM_COLL_NODE, ",
          "COMM_SEND_NODE, COMM_RECV_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, METADATA_NODE"));
    }
    types.insert(type);
  }
  return types;
}

// All ids unless the text, FIRST..LAST, chooses some.
struct IdRange {
  uint64_t first = 0;
  uint64_t last = std::numeric_limits<uint64_t>::max();
};

absl::StatusOr<IdRange> ParseIds(absl::string_view text) {
  IdRange range;
  if (text.empty()) return range;
  const std::vector<std::string> parts = absl::StrSplit(text, "..");
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &range.first) ||
      !absl::SimpleAtoi(parts[1], &range.last) || range.last < range.first) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ids=", text, " is no range of ids; expected e.g. 100..200"));
  }
  return range;
}

absl::StatusOr<ChakraRewriteReport> FilterWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  ASSIGN_OR_RETURN(const std::set<int> types, ParseTypes(FLAGS_types.value()));
  ASSIGN_OR_RETURN(const IdRange ids, ParseIds(FLAGS_ids.value()));
  const RE2 names(FLAGS_names.value(), RE2::Quiet);
  if (!names.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--names: ", names.error()));
  }
  auto options = ReadingOptions<EtFilterOptions>();
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  options.keep = [&](const Node& node) {
    return (types.empty() || types.count(node.type()) > 0) && ids.first <= node.id() &&
           node.id() <= ids.last && RE2::PartialMatch(node.name(), names);
  };
  return FilterEtFiles(FileSystem::Posix(), files, options, UserPath(FLAGS_filter));
}

std::string FormatFiles(const ChakraRewriteReport& report) {
  std::string text;
  if (!report.comm_groups().empty()) absl::StrAppend(&text, "groups: ", report.comm_groups(), "\n");
  for (const std::string& path : report.removed()) {
    absl::StrAppend(&text, "removed: ", path, " of an earlier workload\n");
  }
  return text;
}

absl::StatusOr<int> Filter() {
  ASSIGN_OR_RETURN(ChakraRewriteReport report, FilterWithProgress());
  report.set_output(FLAGS_filter.value());
  std::string text = absl::StrCat(WithThousands(report.nodes()), " nodes kept, ",
                                  WithThousands(report.removed_nodes()), " removed\n");
  if (!report.empty_ranks().empty()) {
    absl::StrAppend(&text, "ranks that keep no node, on which ASTRA-sim aborts: ",
                    absl::StrJoin(report.empty_ranks(), ", "), "\n");
  }
  absl::StrAppend(&text, FormatFiles(report));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : text));
  return kExitDone;
}

absl::StatusOr<ChakraRewriteReport> ObfuscateWithProgress() {
  ASSIGN_OR_RETURN(const EtFiles files, InputFiles());
  auto options = ReadingOptions<EtObfuscatorOptions>();
  options.jitter = FLAGS_jitter.value();
  options.seed = FLAGS_seed.value();
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return ObfuscateEtFiles(FileSystem::Posix(), files, options, UserPath(FLAGS_obfuscate));
}

absl::StatusOr<int> Obfuscate() {
  ASSIGN_OR_RETURN(ChakraRewriteReport report, ObfuscateWithProgress());
  report.set_output(FLAGS_obfuscate.value());
  const std::string text = absl::StrCat(WithThousands(report.nodes()), " nodes written, ",
                                        WithThousands(report.removed_attributes()),
                                        " attributes left out\n", FormatFiles(report));
  RETURN_IF_ERROR(Print(JsonWanted() ? ReportToJson(report) : text));
  return kExitDone;
}

// One of the things that can be done, if its flag is given.
struct Task {
  absl::string_view flag;
  bool wanted;
  absl::StatusOr<int> (*run)();
};

constexpr absl::string_view kInspectTask = "--stats or --check";

// A flag that only some tasks look at.
struct TaskFlag {
  const AnyFlag* flag;
  std::vector<absl::string_view> tasks;
};

// A flag that has no effect is a misunderstanding.
absl::Status CheckFlagsOf(absl::string_view task) {
  const TaskFlag flags[] = {
      {&FLAGS_comm_groups, {kInspectTask, "--dot", "--timeline", "--filter", "--obfuscate"}},
      {&FLAGS_ignore_rules, {kInspectTask}},
      {&FLAGS_center, {"--dot"}},
      {&FLAGS_max_nodes, {"--dot"}},
      {&FLAGS_output, {"--to_json", "--dot", "--timeline"}},
      {&FLAGS_types, {"--filter"}},
      {&FLAGS_names, {"--filter"}},
      {&FLAGS_ids, {"--filter"}},
      {&FLAGS_jitter, {"--obfuscate"}},
      {&FLAGS_seed, {"--obfuscate"}},
  };
  for (const TaskFlag& flag : flags) {
    if (!flag.flag->given() || absl::c_linear_search(flag.tasks, task)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.flag->name(), " needs ", absl::StrJoin(flag.tasks, " or ")));
  }
  if (FLAGS_seed.given() && !FLAGS_jitter.given()) {
    return absl::InvalidArgumentError("--seed needs --jitter");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunTask() {
  const Task tasks[] = {
      {"--to_json", FLAGS_to_json.value(), ToJson},
      {"--dot", FLAGS_dot.value(), ToDot},
      {"--timeline", FLAGS_timeline.value(), ToTimeline},
      {"--diff", !FLAGS_diff.value().empty(), Diff},
      {"--filter", !FLAGS_filter.value().empty(), Filter},
      {"--obfuscate", !FLAGS_obfuscate.value().empty(), Obfuscate},
      {kInspectTask, FLAGS_stats.value() || FLAGS_check.value(), Inspect},
  };
  std::vector<absl::string_view> wanted;
  absl::StatusOr<int> (*run)() = Inspect;
  for (const Task& task : tasks) {
    if (!task.wanted) continue;
    wanted.push_back(task.flag);
    run = task.run;
  }
  if (wanted.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(wanted, ", "), " are different tasks; give one of them"));
  }
  RETURN_IF_ERROR(CheckFlagsOf(wanted.empty() ? kInspectTask : wanted[0]));
  RETURN_IF_ERROR(CheckPaths());
  return run();
}

}  // namespace

Command ChakraInspectCommand() {
  return {
      "chakra_inspect",
      "Shows what is in the Chakra traces of a workload and what is wrong with them, draws them, "
      "compares them, and makes smaller or anonymous ones. Without a task: statistics and "
      "problems.",
      {"chakra_inspect --et=run/w", "chakra_inspect --et=run/w --check --json",
       "chakra_inspect --et=run/w.3.et --dot --center=17 | dot -Tsvg > near17.svg",
       "chakra_inspect --et=run/w --timeline --output=w.json.gz",
       "chakra_inspect --et=run/w --filter=comm --types=COMM_COLL_NODE",
       "chakra_inspect --et=run/w --obfuscate=public/w --jitter=0.05"},
      {&FLAGS_et, &FLAGS_comm_groups, &FLAGS_stats, &FLAGS_check, &FLAGS_ignore_rules,
       &FLAGS_to_json, &FLAGS_dot, &FLAGS_center, &FLAGS_max_nodes, &FLAGS_timeline, &FLAGS_output,
       &FLAGS_diff, &FLAGS_filter, &FLAGS_types, &FLAGS_names, &FLAGS_ids, &FLAGS_obfuscate,
       &FLAGS_jitter, &FLAGS_seed},
      RunTask};
}

}  // namespace meridian
