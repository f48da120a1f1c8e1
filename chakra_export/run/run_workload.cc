#include "chakra_export/run/run_workload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/run/run_passes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// A replay that is further off what was measured is worth a note.
constexpr double kNotableError = 0.03;

absl::Status CheckSize(const RunGraph& run, EtFlavor flavor) {
  const auto named_groups = static_cast<int64_t>(run.groups.size()) - 1;
  if (flavor == EtFlavor::kSimulation && named_groups > kMaxGroupNumber) {
    return InvalidArgument("the run has ", named_groups, " groups; ASTRA-sim tells at most ",
                           kMaxGroupNumber, " apart; see --flavor=full, or export fewer steps");
  }
  // A gap may be added to each node, with two edges, and one for the order of communication.
  if (run.nodes.size() >= ExecutionGraph::kMaxNodes / 2 ||
      run.edges.size() + 4 * run.nodes.size() >= ExecutionGraph::kMaxDependencies) {
    return absl::OutOfRangeError("the run has over 2^31 nodes or edges; convert fewer ranks");
  }
  return absl::OkStatus();
}

// Returns the order with one node more for each rank, before all others.
std::vector<NodeIndex> AddGroupTables(const std::vector<NodeIndex>& order, RunGraph* run) {
  std::set<int64_t> ranks;
  for (const NodeIndex node : order) ranks.insert(run->nodes[node].resource.rank);
  std::vector<NodeIndex> with_tables;
  for (const int64_t rank : ranks) {
    RunNode node;
    node.name = "process_group:init";
    node.type = ChakraProtoMsg::METADATA_NODE;
    node.resource = {rank, ResourceKind::kHostThread, 0};
    node.start_ns = node.end_ns = kNoTimeNs;
    with_tables.push_back(static_cast<NodeIndex>(run->nodes.size()));
    run->nodes.push_back(node);
  }
  with_tables.insert(with_tables.end(), order.begin(), order.end());
  return with_tables;
}

// Returns how long the run took; where ranks have clocks of their own, the longest of them.
int64_t MeasuredNs(const RunGraph& run, const std::vector<NodeIndex>& order) {
  if (run.outline != nullptr) return run.outline->end_ns - run.outline->begin_ns;
  struct Span {
    int64_t begin_ns = std::numeric_limits<int64_t>::max();
    int64_t end_ns = std::numeric_limits<int64_t>::min();
  };
  std::map<int64_t, Span> spans;
  for (const NodeIndex index : order) {
    const RunNode& node = run.nodes[index];
    if (node.start_ns == kNoTimeNs || (!node.IsDeviceWork() && !node.IsOnHost())) continue;
    Span& span = spans[run.has_one_clock ? 0 : node.resource.rank];
    span.begin_ns = std::min(span.begin_ns, node.start_ns);
    span.end_ns = std::max(span.end_ns, node.end_ns);
  }
  int64_t longest_ns = 0;
  for (const auto& [rank, span] : spans) {
    longest_ns = std::max(longest_ns, span.end_ns - span.begin_ns);
  }
  return longest_ns;
}

}  // namespace

absl::StatusOr<RunWorkload> MakeRunWorkload(EtFlavor flavor, bool has_times, RunGraph* run) {
  ASSIGN_OR_RETURN(RunWorkload workload, BuildRunWorkload(flavor, has_times, run));
  RETURN_IF_ERROR(CheckRunWorkload(flavor, has_times, &workload));
  return workload;
}

absl::StatusOr<RunWorkload> BuildRunWorkload(EtFlavor flavor, bool has_times, RunGraph* run) {
  RETURN_IF_ERROR(CheckSize(*run, flavor));
  ASSIGN_OR_RETURN(std::vector<NodeIndex> order, GlobalOrder(*run));
  if (flavor == EtFlavor::kSimulation) {
    order = FoldHosts(order, run);
    RETURN_IF_ERROR(CheckSize(*run, flavor));
    AddCommunicationOrder(order, run);
  }
  if (has_times) order = AddHostGaps(order, run);
  if (flavor == EtFlavor::kFull) order = AddGroupTables(order, run);
  RunWorkload workload;
  workload.graph = ToExecutionGraph(order, run);
  if (has_times) workload.report.set_measured_ns(MeasuredNs(*run, order));
  workload.run_nodes = std::move(order);
  RETURN_IF_ERROR(RemoveTransitiveEdges(&workload.graph).status());
  return workload;
}

absl::Status CheckRunWorkload(EtFlavor flavor, bool has_times, RunWorkload* workload) {
  const ExecutionGraph& graph = workload->graph;
  ChakraWorkloadReport& report = workload->report;
  const std::map<std::string, int64_t> edges = graph.CountEdgeKinds();
  report.mutable_edges()->insert(edges.begin(), edges.end());
  RETURN_IF_ERROR(TopologicalOrder(graph).status());
  const CommunicationMatch match(graph);
  if (!match.problems().empty()) {
    return FailedPrecondition("the ranks do not communicate alike: ", match.problems()[0].text);
  }
  const absl::Status simulated = ReplayAsSimulator(graph, match).status();
  if (!simulated.ok()) {
    // Traces for analysis may keep apart what overlapped.
    if (flavor == EtFlavor::kSimulation) return simulated;
    report.add_warnings(absl::StrCat(
        "with one communication of a rank at a time these traces would not run to the end (",
        std::string(simulated.message()), "); those of --flavor=simulation do"));
  }
  if (!has_times) return absl::OkStatus();
  ReplayOptions options;
  options.send_mode = SendMode::kRendezvousIfPossible;
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match, options));
  report.set_replayed_ns(replay.makespan_ns);
  const double off = std::abs(static_cast<double>(report.replayed_ns()) /
                                  static_cast<double>(std::max<int64_t>(1, report.measured_ns())) -
                              1);
  if (off > kNotableError) {
    report.add_warnings(absl::StrFormat(
        "replayed is %.1f %% off measured: work of one stream overlaps, or events are there twice; "
        "do not trust simulations of these traces",
        100 * off));
  }
  return absl::OkStatus();
}

absl::Status AddRunWorkload(const RunGraph& run, const RunWorkload& workload,
                            const EtDecorators& decorators, EtWorkloadWriter* writer) {
  const std::string group_table = ProcessGroupTable(GroupsOf(workload.graph));
  EtDecorators all;
  all.own = [&](NodeIndex index, ChakraProtoMsg::Node* message) {
    const RunNode& node = run.nodes[workload.run_nodes[index]];
    if (node.step.has_value()) SetIntAttribute(kStepAttribute, *node.step, message->mutable_attr());
    if (decorators.own != nullptr) decorators.own(workload.run_nodes[index], message);
  };
  all.shared = [&](NodeIndex index, ChakraProtoMsg::Node* message) {
    const RunNode& node = run.nodes[workload.run_nodes[index]];
    if (!node.op_kind.empty()) {
      SetStringAttribute(kOpKindAttribute, node.op_kind, message->mutable_attr());
    }
    if (node.type == ChakraProtoMsg::METADATA_NODE) {
      message->mutable_inputs()->set_values(group_table);
    }
    if (decorators.shared != nullptr) decorators.shared(workload.run_nodes[index], message);
  };
  if (decorators.kind_of != nullptr) {
    all.kind_of = [&](NodeIndex index) { return decorators.kind_of(workload.run_nodes[index]); };
  }
  return AddEtGraph(workload.graph, all, writer);
}

absl::Status WriteRunWorkload(FileSystem& file_system, const RunGraph& run,
                              const std::string& prefix, const EtDecorators& decorators,
                              RunWorkload* workload) {
  EtWorkloadWriter writer(file_system, prefix);
  RETURN_IF_ERROR(AddRunWorkload(run, *workload, decorators, &writer));
  ASSIGN_OR_RETURN(const ChakraWorkloadReport written, writer.Commit(run.rank_count));
  workload->report.MergeFrom(written);
  return absl::OkStatus();
}

std::string FormatWorkloadReport(const ChakraWorkloadReport& report) {
  TextTable table({">rank", ">nodes", ">comm", "file"});
  std::map<std::string, int64_t> left_out;
  for (const ChakraWorkloadRank& rank : report.ranks()) {
    table.AddRow({absl::StrCat(rank.rank()), WithThousands(rank.nodes()),
                  WithThousands(rank.comm_nodes()), rank.path()});
    for (const auto& [reason, count] : rank.left_out()) left_out[reason] += count;
  }
  std::string text = table.ToString();
  if (!report.comm_groups().empty()) {
    absl::StrAppend(&text, "groups: ", report.comm_groups(), "\n");
  }
  if (!report.edges().empty()) {
    const auto append_kind = [&](std::string* out, EdgeKind kind) {
      const std::string name(EdgeKindName(kind));
      absl::StrAppend(out, WithThousands(report.edges().at(name)), " ", name);
    };
    absl::StrAppend(&text, "edges: ", absl::StrJoin(kEdgeKinds, ", ", append_kind), "\n");
  }
  if (report.measured_ns() > 0) {
    absl::StrAppendFormat(&text, "measured %.3f ms, replayed %.3f ms\n",
                          report.measured_ns() * 1e-6, report.replayed_ns() * 1e-6);
  }
  for (const auto& [reason, count] : left_out) {
    absl::StrAppend(&text, "left out: ", WithThousands(count), " x ", reason, "\n");
  }
  for (const std::string& path : report.removed()) {
    absl::StrAppend(&text, "removed: ", path, " of an earlier workload\n");
  }
  return text;
}

}  // namespace meridian
