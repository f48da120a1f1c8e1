#include "chakra_export/xspace/xspace_exporter.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/xspace/chakra_export_report.pb.h"
#include "chakra_export/xspace/data_dependencies.h"
#include "chakra_export/xspace/hlo_cost.h"
#include "chakra_export/xspace/host_nodes.h"
#include "chakra_export/xspace/program_nodes.h"
#include "chakra_export/xspace/run_agreement.h"
#include "third_party/chakra/et_def.pb.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// How long all of a communication took from when its last member had started; and what ran as the
// node.
constexpr absl::string_view kTransferAttribute = "transfer_ns";
constexpr absl::string_view kHloOpAttribute = "hlo_op";
constexpr absl::string_view kHloModuleAttribute = "hlo_module";
constexpr absl::string_view kPiecesAttribute = "device_events";

class Exporter {
 public:
  Exporter(const ProfiledRun& input, const XSpaceExportOptions& options)
      : input_(input), options_(options) {}

  absl::StatusOr<XSpaceGraph> BuildGraph() {
    RETURN_IF_ERROR(Build());
    XSpaceGraph result;
    for (const NodeIndex index : workload_.run_nodes) {
      const RunNode& node = nodes_.graph.nodes[index];
      result.computes.push_back(node.type == ChakraProtoMsg::COMP_NODE &&
                                node.op_kind != kHostGapOpKind &&
                                node.op_kind != kUnmatchedOpKind && node.op_kind != kLocalOpKind);
    }
    result.graph = std::move(workload_.graph);
    return result;
  }

  absl::StatusOr<ChakraExportReport> Export(FileSystem& files, const std::string& prefix) {
    RETURN_IF_ERROR(Build());
    ASSIGN_OR_RETURN(written_,
                     WriteRunWorkload(files, nodes_.graph, workload_, prefix,
                                      [this](NodeIndex node, ChakraProtoMsg::Node* message) {
                                        Decorate(nodes_.graph.nodes[node], message);
                                      }));
    Describe();
    return std::move(report_);
  }

 private:
  absl::Status Build() {
    RETURN_IF_ERROR(CheckAgreement());
    const bool is_profiled = options_.intent == EtIntent::kProfiled;
    if (is_profiled) {
      RETURN_IF_ERROR(CheckClocks());
      RETURN_IF_ERROR(MakeProfiledNodes());
    } else {
      ASSIGN_OR_RETURN(nodes_, MakeProgramNodes(input_.profiles, input_.collectives));
      SetCosts();
    }
    ASSIGN_OR_RETURN(workload_, MakeRunWorkload(options_.flavor, is_profiled, &nodes_.graph));
    return absl::OkStatus();
  }

  // Profiles of different runs, or that disagree, would lose their collectives without a word.
  absl::Status CheckAgreement() const {
    const CollectiveRun& run = input_.collectives;
    RETURN_IF_ERROR(CheckProgramsAgree(input_.profiles, run));
    const std::vector<uint32_t>& nodes = run.table.node_of_rank();
    // Whoever lacks a profile has a right to collectives without counterparts.
    if (std::find(nodes.begin(), nodes.end(), CollectiveTable::kNoNode) == nodes.end()) {
      RETURN_IF_ERROR(CheckOneRun(run));
    }
    return CheckNoneLacksTheMiddle(run);
  }

  // Durations of collectives are differences of clocks, so the clocks must agree.
  absl::Status CheckClocks() {
    const HappensBefore check = CheckHappensBefore(input_.collectives.table);
    report_.set_collectives_checked(check.checked);
    report_.set_violations(static_cast<int64_t>(check.violations.size()));
    if (options_.allow_violations) return absl::OkStatus();
    return RefuseViolations(input_.collectives, check);
  }

  absl::Status MakeProfiledNodes() {
    WorkNodesOptions node_options;
    node_options.steps = options_.steps;
    ASSIGN_OR_RETURN(nodes_, MakeWorkNodes(input_.profiles, input_.collectives, node_options));
    RunGraph& graph = nodes_.graph;
    graph.has_one_clock = report_.violations() == 0;
    AddDeviceDependencies(&graph);
    SetCosts();
    MergeWork(options_.granularity, &graph);
    const size_t device_nodes = graph.nodes.size();
    AddHostNodes(nodes_.profile_of_rank, &graph);
    if (options_.flavor == EtFlavor::kFull && graph.nodes.size() == device_nodes) {
      nodes_.notes.push_back(
          "the profiles hold no calls that launched device work, as those of XLA:CPU do not: "
          "--flavor=full adds no host nodes");
    }
    return absl::OkStatus();
  }

  void Decorate(const RunNode& node, ChakraProtoMsg::Node* message) {
    EtAttributes* attributes = message->mutable_attr();
    AddCost(node, message);
    if (node.IsCommunication() && node.start_ns != kNoTimeNs) {
      SetIntAttribute(kRawDurationNsAttribute, node.end_ns - node.start_ns, attributes);
      SetIntAttribute(kTransferAttribute, node.transfer_ns, attributes);
    }
    if (node.work == nullptr) return;
    if (node.pieces > 1) SetIntAttribute(kPiecesAttribute, node.pieces, attributes);
    if (!node.work->hlo_op.empty()) {
      SetStringAttribute(kHloOpAttribute, node.work->hlo_op, attributes);
    }
    if (!node.work->module.empty()) {
      SetStringAttribute(kHloModuleAttribute, node.work->module, attributes);
    }
  }

  // Computing what an instruction costs takes longer than to remember it.
  const HloCost& CostOfInstruction(const HloInstruction* instruction) {
    const auto [it, is_new] = costs_.try_emplace(instruction);
    if (is_new) it->second = CostOf(*instruction);
    return it->second;
  }

  void AddCost(const RunNode& node, ChakraProtoMsg::Node* message) {
    if (node.instruction != nullptr && node.bears_cost) {
      const HloCost& cost = CostOfInstruction(node.instruction);
      if (!cost.inputs.empty()) SetShapes(cost.inputs, message->mutable_inputs());
      if (!cost.outputs.empty()) SetShapes(cost.outputs, message->mutable_outputs());
    }
    if (node.type == ChakraProtoMsg::COMP_NODE && node.resource.kind != ResourceKind::kHostThread) {
      SetRoofline(node.operations, node.bytes, message->mutable_attr());
    } else if (node.bytes > 0) {
      SetIntAttribute(kTensorSizeAttribute, node.bytes, message->mutable_attr());
    }
  }

  // Must come before nodes are merged, so that those that stand for many cost what all of them do.
  void SetCosts() {
    ChooseCostBearers();
    for (RunNode& node : nodes_.graph.nodes) {
      if (IsCopy(node)) {
        node.bytes = node.work->copied_bytes;
      } else if (node.bears_cost) {
        const HloCost& cost = CostOfInstruction(node.instruction);
        node.operations = cost.operations.value_or(0);
        node.bytes = cost.bytes.value_or(0);
      }
      // As it is written for a roofline, so that sums are those of what is written.
      if (node.bytes > 0) node.operations = std::max<int64_t>(1, node.operations);
    }
  }

  static bool IsCopy(const RunNode& node) {
    return node.work != nullptr && node.work->kind == WorkKind::kMemcpy;
  }

  // Of the kernels that one instruction ran as, one after the other, the first bears its cost.
  // Copies have one of their own.
  void ChooseCostBearers() {
    std::vector<RunNode>& nodes = nodes_.graph.nodes;
    std::map<Resource, NodeIndex> last;
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      if (nodes[i].instruction == nullptr) continue;
      const auto [it, is_first] = last.emplace(nodes[i].resource, i);
      const RunNode& before = nodes[it->second];
      const bool goes_on = !is_first && nodes[i].work != nullptr && before.work != nullptr &&
                           before.instruction == nodes[i].instruction &&
                           before.work->run_id == nodes[i].work->run_id &&
                           before.work != nodes[i].work;
      const bool prepares = nodes[i].work != nullptr && nodes[i].work->prepares_collective;
      nodes[i].bears_cost = !goes_on && !prepares && !IsCopy(nodes[i]);
      it->second = i;
    }
  }

  void Describe() {
    static constexpr absl::string_view kGranularities[] = {"kernel", "hlo", "step"};
    DescribeWorkload(workload_, written_, &report_);
    report_.set_flavor(std::string(EtFlavorName(options_.flavor)));
    report_.set_granularity(std::string(kGranularities[static_cast<size_t>(options_.granularity)]));
    report_.set_intent(options_.intent == EtIntent::kProfiled ? "profiled" : "post_transformed");
    // How executions were matched means nothing where there are none.
    const bool communicates = !input_.collectives.table.instances().empty();
    for (const std::string& note : input_.collectives.ranks.notes) report_.add_notes(note);
    for (const std::string& note : input_.collectives.runs.notes) {
      if (communicates) report_.add_notes(note);
    }
    for (const std::string& note : nodes_.notes) report_.add_notes(note);
    for (const std::string& note : workload_.notes) report_.add_notes(note);
    report_.set_transitive_edges_removed(static_cast<int64_t>(workload_.removed_edges));
    DescribeRanks();
    DescribeCommunication();
  }

  void DescribeRanks() {
    const ExecutionGraph& graph = workload_.graph;
    std::map<int64_t, ExportedRank*> ranks;
    for (const EtFile& file : written_.files) {
      ExportedRank* rank = report_.add_ranks();
      rank->set_rank(file.rank);
      rank->set_path(file.path);
      const WorkAccount& account = nodes_.accounts[file.rank];
      rank->set_device_events(account.events);
      rank->set_events_in_nodes(account.in_nodes);
      for (const auto& [reason, count] : account.dropped) {
        DroppedEvents* dropped = rank->add_dropped();
        dropped->set_reason(reason);
        dropped->set_count(count);
      }
      ranks[file.rank] = rank;
    }
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      ExportedRank* rank = ranks[graph.rank(node)];
      rank->set_nodes(rank->nodes() + 1);
      if (graph.communication(node) != nullptr) rank->set_comm_nodes(rank->comm_nodes() + 1);
    }
  }

  void DescribeCommunication() {
    const ExecutionGraph& graph = workload_.graph;
    std::map<std::tuple<std::string, int64_t, std::string>, int64_t> counts;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Communication* communication = graph.communication(node);
      if (communication == nullptr) continue;
      const bool is_collective = graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE;
      const std::string group =
          is_collective ? graph.groups()[communication->group].name : std::string();
      ++counts[{graph.CommunicationKind(node), communication->bytes, group}];
    }
    for (const auto& [key, count] : counts) {
      ExportedCommunication* entry = report_.add_communication();
      entry->set_kind(std::get<0>(key));
      entry->set_bytes(std::get<1>(key));
      entry->set_group(std::get<2>(key));
      entry->set_nodes(count);
    }
  }

  const ProfiledRun& input_;
  const XSpaceExportOptions& options_;
  WorkNodes nodes_;
  absl::flat_hash_map<const HloInstruction*, HloCost> costs_;
  RunWorkload workload_;
  WrittenWorkload written_;
  ChakraExportReport report_;
};

}  // namespace

absl::StatusOr<XSpaceGraph> BuildXSpaceGraph(const ProfiledRun& run,
                                             const XSpaceExportOptions& options) {
  return Exporter(run, options).BuildGraph();
}

absl::StatusOr<ChakraExportReport> ExportXSpaces(FileSystem& file_system,
                                                 const std::vector<std::string>& traces,
                                                 const std::string& prefix,
                                                 const XSpaceExportOptions& options) {
  ASSIGN_OR_RETURN(const ProfiledRun run, ReadProfiledRun(file_system, traces, options));
  return Exporter(run, options).Export(file_system, prefix);
}

std::string FormatExportReport(const ChakraExportReport& report) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable ranks({{"rank", kRight},
                   {"nodes", kRight},
                   {"comm", kRight},
                   {"device events", kRight},
                   {"dropped", kRight},
                   {"file"}});
  for (const ExportedRank& rank : report.ranks()) {
    ranks.AddRow({absl::StrCat(rank.rank()), WithThousands(rank.nodes()),
                  WithThousands(rank.comm_nodes()), WithThousands(rank.device_events()),
                  WithThousands(rank.device_events() - rank.events_in_nodes()), rank.path()});
  }
  std::string out = ranks.ToString();
  if (!report.comm_groups().empty()) absl::StrAppend(&out, "groups: ", report.comm_groups(), "\n");
  const auto append_kind = [&](std::string* text, EdgeKind kind) {
    const std::string name(EdgeKindName(kind));
    absl::StrAppend(text, WithThousands(report.edges().at(name)), " ", name);
  };
  absl::StrAppend(&out, "edges: ", absl::StrJoin(kEdgeKinds, ", ", append_kind), "; ",
                  WithThousands(report.transitive_edges_removed()), " implied ones left out\n");
  if (report.measured_ns() > 0) {
    absl::StrAppend(&out, FormatRunTimes(report.measured_ns(), report.replayed_ns(),
                                         report.simulator_ns(), report.host_gap_share()));
  }
  std::map<std::string, int64_t> dropped;
  for (const ExportedRank& rank : report.ranks()) {
    for (const DroppedEvents& entry : rank.dropped()) dropped[entry.reason()] += entry.count();
  }
  for (const auto& [reason, count] : dropped) {
    absl::StrAppend(&out, "dropped: ", WithThousands(count), " x ", reason, "\n");
  }
  for (const std::string& path : report.removed()) {
    absl::StrAppend(&out, "removed: ", path, " of an earlier workload\n");
  }
  return out;
}

}  // namespace meridian
