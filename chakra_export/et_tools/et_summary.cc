#include "chakra_export/et_tools/et_summary.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/graph_view.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/rank_activity.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr int kMaxShownPerRule = 5;

using RankReports = std::map<int64_t, ChakraRankReport*>;

// Traces may say anything, so sums stop at the largest number.
int64_t SaturatingAdd(int64_t a, int64_t b) { return SaturateToInt64(absl::int128(a) + b); }

// Counts nodes and edges, and finds when each rank began and ended.
void CountNodes(const ExecutionGraph& graph, const RankReports& ranks, ChakraReport* report) {
  report->set_nodes(static_cast<int64_t>(graph.node_count()));
  report->set_edges(static_cast<int64_t>(graph.dependency_count()));
  std::map<ChakraProtoMsg::NodeType, int64_t> types;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    ++types[graph.type(node)];
    ChakraRankReport* rank = ranks.at(graph.rank(node));
    const auto edges = static_cast<int64_t>(graph.dependencies(node).size());
    rank->set_nodes(rank->nodes() + 1);
    rank->set_edges(rank->edges() + edges);
    if (edges == 0) rank->set_roots(rank->roots() + 1);
    const int64_t start_ns = graph.start_ns(node);
    if (start_ns == kNoTimeNs) continue;
    const int64_t end_ns = start_ns + graph.duration_ns(node);
    if (!rank->has_first_start_ns() || start_ns < rank->first_start_ns()) {
      rank->set_first_start_ns(start_ns);
    }
    if (!rank->has_last_end_ns() || end_ns > rank->last_end_ns()) rank->set_last_end_ns(end_ns);
  }
  for (const auto& [type, count] : types) {
    (*report->mutable_nodes_by_type())[ChakraProtoMsg::NodeType_Name(type)] = count;
  }
  const std::map<std::string, int64_t> kinds = graph.CountEdgeKinds();
  report->mutable_edges_by_kind()->insert(kinds.begin(), kinds.end());
  for (const auto& [number, rank] : ranks) report->set_roots(report->roots() + rank->roots());
}

// Counts communication of one type and group together; messages have no group.
void CountCommunication(const ExecutionGraph& graph, ChakraReport* report) {
  std::map<std::pair<std::string, GroupIndex>, ChakraCommunicationReport> totals;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* communication = graph.communication(node);
    if (communication == nullptr) continue;
    const std::string type = graph.CommunicationKind(node);
    const bool collective = graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE;
    ChakraCommunicationReport& total = totals[{type, collective ? communication->group : 0}];
    if (total.nodes() == 0 && collective) {
      const ProcessGroup& group = graph.groups()[communication->group];
      total.set_group(group.name);
      for (const int64_t rank : group.ranks) total.add_ranks(rank);
    }
    total.set_type(type);
    total.set_nodes(total.nodes() + 1);
    total.set_bytes(SaturatingAdd(total.bytes(), communication->bytes));
    total.set_duration_ns(SaturatingAdd(total.duration_ns(), graph.duration_ns(node)));
  }
  for (auto& [key, total] : totals) *report->add_communication() = std::move(total);
  absl::c_stable_sort(*report->mutable_communication(),
                      [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
}

void Summarize(const ExecutionGraph& graph, ChakraReport* report) {
  RankReports ranks;
  for (ChakraRankReport& rank : *report->mutable_ranks()) ranks[rank.rank()] = &rank;
  CountNodes(graph, ranks, report);
  CountCommunication(graph, report);
  const std::optional<NodeTimes> times = MeasuredTimes(graph);
  if (!times.has_value()) return;
  const std::vector<RankActivity> activities = ActivityAt(graph, times->starts_ns, times->ends_ns);
  const std::vector<int64_t> numbers = graph.Ranks();
  for (size_t i = 0; i < activities.size(); ++i) {
    ChakraRankReport* rank = ranks.at(numbers[i]);
    rank->set_compute_ns(activities[i].computing_ns);
    rank->set_communication_ns(activities[i].communicating_ns);
    rank->set_overlap_ns(activities[i].communicating_ns - activities[i].exposed_ns);
  }
}

std::string Millis(int64_t ns) { return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e6); }

std::string FormatRanks(const ChakraReport& report) {
  TextTable table({">rank", ">nodes", ">edges", ">roots", ">span ms", ">compute ms", ">comm ms",
                   ">overlap ms"});
  for (const ChakraRankReport& rank : report.ranks()) {
    const bool timed = rank.has_first_start_ns();
    const bool busy = rank.has_compute_ns();
    table.AddRow({absl::StrCat(rank.rank()), WithThousands(rank.nodes()),
                  WithThousands(rank.edges()), WithThousands(rank.roots()),
                  timed ? Millis(rank.last_end_ns() - rank.first_start_ns()) : "-",
                  busy ? Millis(rank.compute_ns()) : "-",
                  busy ? Millis(rank.communication_ns()) : "-",
                  busy ? Millis(rank.overlap_ns()) : "-"});
  }
  return table.ToString();
}

std::string FormatCounts(const std::string& what, const std::string& plural,
                         const google::protobuf::Map<std::string, int64_t>& counts) {
  TextTable table({what, absl::StrCat(">", plural)});
  for (const auto& [name, count] : std::map<std::string, int64_t>(counts.begin(), counts.end())) {
    table.AddRow({name, WithThousands(count)});
  }
  return table.ToString();
}

std::string FormatCommunication(const ChakraReport& report) {
  TextTable table({"communication", "group", "ranks", ">nodes", ">bytes", ">ms"});
  for (const ChakraCommunicationReport& entry : report.communication()) {
    const bool message = entry.type() == "SEND" || entry.type() == "RECV";
    table.AddRow({entry.type(),
                  message                 ? "-"
                  : entry.group().empty() ? "all"
                                          : entry.group(),
                  message ? "-" : FirstCharacters(absl::StrJoin(entry.ranks(), ","), 24),
                  WithThousands(entry.nodes()), WithThousands(entry.bytes()),
                  Millis(entry.duration_ns())});
  }
  return table.ToString();
}

// Appends a rule with how often it is broken, and the first few cases.
void AppendProblems(const ChakraReport& report, const EtRule& rule, std::string* text) {
  const auto count = report.problem_counts().find(std::string(rule.name));
  if (count == report.problem_counts().end()) return;
  absl::StrAppend(text, rule.severity, " ", rule.name, ": ", WithThousands(count->second), "\n");
  int shown = 0;
  for (const ChakraProblemReport& problem : report.problems()) {
    if (problem.rule() != rule.name) continue;
    if (++shown > kMaxShownPerRule) {
      absl::StrAppend(text, "  ...\n");
      return;
    }
    absl::StrAppend(text, "  ");
    // What concerns the whole graph names ranks itself.
    const bool names_rank = problem.has_node() && !problem.has_offset();
    if (problem.has_rank() && !names_rank) absl::StrAppend(text, "rank ", problem.rank(), ": ");
    if (problem.has_offset()) absl::StrAppend(text, "offset ", problem.offset(), ": ");
    absl::StrAppend(text, Printable(problem.message()), "\n");
  }
}

}  // namespace

absl::StatusOr<ChakraReport> SummarizeEtFiles(FileSystem& file_system, const EtFiles& files,
                                              const EtGraphReaderOptions& options,
                                              bool needs_graph) {
  EtProblems problems;
  RETURN_IF_ERROR(CheckEtFiles(file_system, files, options, &problems));

  EtGraphReaderOptions graph_options = options;
  graph_options.ignore_dangling = true;
  const absl::StatusOr<ExecutionGraph> graph = ReadEtGraph(file_system, files, graph_options);
  if (graph.ok()) {
    CheckEtGraph(*graph, &problems);
    Summarize(*graph, &problems.report());
  } else if (absl::IsInvalidArgument(graph.status()) && !needs_graph) {
    problems.Add("no_graph", {}, {}, {}, graph.status().message());
  } else {
    return graph.status();
  }
  return std::move(problems.report());
}

std::string FormatChakraStats(const ChakraReport& report) {
  std::string text =
      absl::StrCat(FormatRanks(report), "\n", FormatCounts("type", "nodes", report.nodes_by_type()),
                   "\n", FormatCounts("edge", "edges", report.edges_by_kind()));
  if (report.communication_size() > 0) absl::StrAppend(&text, "\n", FormatCommunication(report));
  return text;
}

std::string FormatChakraProblems(const ChakraReport& report) {
  if (report.problem_counts().empty()) return "no problems\n";
  std::string text;
  for (const absl::string_view severity : {"error", "warning"}) {
    for (const EtRule& rule : kEtRules) {
      if (rule.severity == severity) AppendProblems(report, rule, &text);
    }
  }
  return absl::StrCat(text, WithThousands(report.errors()), " errors, ",
                      WithThousands(report.warnings()), " warnings\n");
}

}  // namespace meridian
