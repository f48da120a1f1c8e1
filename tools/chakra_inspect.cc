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
#include "absl/flags/flag.h"
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
#include "tools/pipeline/output_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/tables/text_table.h"

ABSL_FLAG(std::string, et, "",
          "The traces: the PREFIX of PREFIX.<rank>.et[.gz], or one file, plain or gzip.");
ABSL_FLAG(std::string, comm_groups, "",
          "JSON file with the ranks of process groups. Default: PREFIX.comm_groups.json, if there "
          "is one.");
ABSL_FLAG(bool, stats, false, "Print nodes, edges, bytes, critical length and overlap.");
ABSL_FLAG(bool, check, false,
          "Print what is wrong, also what ASTRA-sim would abort on; exit with 1 on errors.");
ABSL_FLAG(std::string, ignore_rules, "", "Rules not to check, e.g. host_node,memory_node.");
ABSL_FLAG(bool, to_json, false, "Write all nodes as one JSON document.");
ABSL_FLAG(bool, dot, false, "Write the graph for Graphviz; a large one is cut to a neighbourhood.");
ABSL_FLAG(std::string, center, "",
          "With --dot: the node in the middle, as ID or RANK:ID. Default: the longest.");
ABSL_FLAG(int64_t, max_nodes, 200, "With --dot: how many nodes to show at most.");
ABSL_FLAG(bool, timeline, false,
          "Write the nodes as a Chrome trace: as measured, or without start times as replayed.");
ABSL_FLAG(
    std::string, output, "",
    "Where --to_json, --dot and --timeline write, gzip when it ends in .gz. Default: standard "
    "output.");
ABSL_FLAG(std::string, diff, "", "Other traces to compare with; exit with 1 if they differ.");
ABSL_FLAG(std::string, filter, "",
          "Prefix of new traces with the nodes that --types, --names and --ids choose; what waited "
          "for another node waits for what that one waited for.");
ABSL_FLAG(std::string, types, "",
          "With --filter: types of nodes to keep, e.g. COMP_NODE,COMM_COLL_NODE.");
ABSL_FLAG(std::string, names, "",
          "With --filter: regular expression that the names of nodes to keep match somewhere.");
ABSL_FLAG(std::string, ids, "", "With --filter: ids of nodes to keep, FIRST..LAST.");
ABSL_FLAG(std::string, obfuscate, "",
          "Prefix of new traces that simulate alike, without names, shapes and other texts.");
ABSL_FLAG(
    double, jitter, 0,
    "With --obfuscate: change durations by up to this share, e.g. 0.05, and drop start times.");
ABSL_FLAG(uint64_t, seed, 0, "With --jitter: another seed, other changes.");

namespace meridian {
namespace {

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
  RETURN_IF_ERROR(CheckPrefix("--filter", absl::GetFlag(FLAGS_filter), inputs));
  return CheckPrefix("--obfuscate", absl::GetFlag(FLAGS_obfuscate), inputs);
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
  ASSIGN_OR_RETURN(options.ignored_rules, ParseRules(absl::GetFlag(FLAGS_ignore_rules)));
  return InspectChakra(FileSystem::Posix(), files, options);
}

absl::StatusOr<int> Inspect() {
  const bool check = absl::GetFlag(FLAGS_check);
  const bool stats = absl::GetFlag(FLAGS_stats) || !check;
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
    if (!absl::GetFlag(FLAGS_stats) || check) {
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
  const int64_t max_nodes = absl::GetFlag(FLAGS_max_nodes);
  if (max_nodes < 1) return absl::InvalidArgumentError("--max_nodes must be at least 1");
  ASSIGN_OR_RETURN(const ExecutionGraph graph, InputGraph());
  const CommunicationMatch match(graph);
  std::vector<NodeIndex> nodes;
  if (graph.node_count() > 0) {
    NodeIndex center = LongestNode(graph);
    const std::string wanted = absl::GetFlag(FLAGS_center);
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
      return Annotate(replay.status(), absl::StrCat(absl::GetFlag(FLAGS_et),
                                                    ": without start times it must be replayed"));
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
  report.set_first(absl::GetFlag(FLAGS_et));
  report.set_second(absl::GetFlag(FLAGS_diff));
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
  ASSIGN_OR_RETURN(const std::set<int> types, ParseTypes(absl::GetFlag(FLAGS_types)));
  ASSIGN_OR_RETURN(const IdRange ids, ParseIds(absl::GetFlag(FLAGS_ids)));
  const RE2 names(absl::GetFlag(FLAGS_names), RE2::Quiet);
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
  report.set_output(absl::GetFlag(FLAGS_filter));
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
  options.jitter = absl::GetFlag(FLAGS_jitter);
  options.seed = absl::GetFlag(FLAGS_seed);
  ASSIGN_OR_RETURN(options.groups, InputGroups(files));
  return ObfuscateEtFiles(FileSystem::Posix(), files, options, UserPath(FLAGS_obfuscate));
}

absl::StatusOr<int> Obfuscate() {
  ASSIGN_OR_RETURN(ChakraRewriteReport report, ObfuscateWithProgress());
  report.set_output(absl::GetFlag(FLAGS_obfuscate));
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
  absl::string_view name;
  std::vector<absl::string_view> tasks;
};

// A flag that has no effect is a misunderstanding.
absl::Status CheckFlagsOf(absl::string_view task) {
  const TaskFlag flags[] = {
      {"comm_groups", {kInspectTask, "--dot", "--timeline", "--filter", "--obfuscate"}},
      {"ignore_rules", {kInspectTask}},
      {"center", {"--dot"}},
      {"max_nodes", {"--dot"}},
      {"output", {"--to_json", "--dot", "--timeline"}},
      {"types", {"--filter"}},
      {"names", {"--filter"}},
      {"ids", {"--filter"}},
      {"jitter", {"--obfuscate"}},
      {"seed", {"--obfuscate"}},
  };
  for (const TaskFlag& flag : flags) {
    if (!IsGiven(flag.name) || absl::c_linear_search(flag.tasks, task)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.name, " needs ", absl::StrJoin(flag.tasks, " or ")));
  }
  if (IsGiven("seed") && !IsGiven("jitter")) {
    return absl::InvalidArgumentError("--seed needs --jitter");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunTask() {
  const Task tasks[] = {
      {"--to_json", absl::GetFlag(FLAGS_to_json), ToJson},
      {"--dot", absl::GetFlag(FLAGS_dot), ToDot},
      {"--timeline", absl::GetFlag(FLAGS_timeline), ToTimeline},
      {"--diff", !absl::GetFlag(FLAGS_diff).empty(), Diff},
      {"--filter", !absl::GetFlag(FLAGS_filter).empty(), Filter},
      {"--obfuscate", !absl::GetFlag(FLAGS_obfuscate).empty(), Obfuscate},
      {kInspectTask, absl::GetFlag(FLAGS_stats) || absl::GetFlag(FLAGS_check), Inspect},
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
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand(
      {"chakra_inspect",
       "Shows what is in the Chakra traces of a workload and what is wrong with them, draws them, "
       "compares them, and makes smaller or anonymous ones. Without a task: statistics and "
       "problems.",
       {"chakra_inspect --et=run/w", "chakra_inspect --et=run/w --check --json",
        "chakra_inspect --et=run/w.3.et --dot --center=17 | dot -Tsvg > near17.svg",
        "chakra_inspect --et=run/w --timeline --output=w.json.gz",
        "chakra_inspect --et=run/w --filter=comm --types=COMM_COLL_NODE",
        "chakra_inspect --et=run/w --obfuscate=public/w --jitter=0.05"},
       {"et", "comm_groups", "stats", "check", "ignore_rules", "to_json", "dot", "center",
        "max_nodes", "timeline", "output", "diff", "filter", "types", "names", "ids", "obfuscate",
        "jitter", "seed"}},
      argc, argv, meridian::RunTask);
}
