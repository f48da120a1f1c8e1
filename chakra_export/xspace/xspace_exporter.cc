#include "chakra_export/xspace/xspace_exporter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/xspace/data_dependencies.h"
#include "chakra_export/xspace/hlo_cost.h"
#include "chakra_export/xspace/hlo_tensors.h"
#include "chakra_export/xspace/host_nodes.h"
#include "chakra_export/xspace/run_agreement.h"
#include "third_party/chakra/et_def.pb.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace meridian {
namespace {

// What ran as the node.
constexpr absl::string_view kHloOpAttribute = "hlo_op";
constexpr absl::string_view kHloModuleAttribute = "hlo_module";

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

  absl::StatusOr<ChakraWorkloadReport> Export(FileSystem& files, const std::string& prefix) {
    RETURN_IF_ERROR(Build());
    FindTensors();
    const auto decorate = [this](NodeIndex node, ChakraProtoMsg::Node* message) {
      Decorate(nodes_.graph.nodes[node], message);
    };
    RETURN_IF_ERROR(WriteRunWorkload(files, nodes_.graph, prefix, decorate, &workload_));
    Describe(&workload_.report);
    return std::move(workload_.report);
  }

 private:
  absl::Status Build() {
    RETURN_IF_ERROR(CheckAgreement());
    const bool is_profiled = options_.intent == EtIntent::kProfiled;
    if (is_profiled) {
      RETURN_IF_ERROR(CheckClocks());
      RETURN_IF_ERROR(MakeProfiledNodes());
    } else {
      ASSIGN_OR_RETURN(nodes_, MakeProgramNodes(input_.profiles, input_.collectives,
                                                options_.intent == EtIntent::kPreTransformed));
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
    // Whoever lacks a profile has a right to collectives without counterparts. A profile without
    // collectives, however, may be that of the rank that seems to lack one.
    const bool has_silent =
        std::any_of(run.profiles.begin(), run.profiles.end(),
                    [](const ProfileCollectives& profile) { return profile.events.empty(); });
    if (has_silent ||
        std::find(nodes.begin(), nodes.end(), CollectiveTable::kNoNode) == nodes.end()) {
      RETURN_IF_ERROR(CheckOneRun(run));
    }
    return CheckNoneLacksTheMiddle(run);
  }

  // Durations of collectives are differences of clocks, so the clocks must agree.
  absl::Status CheckClocks() {
    const HappensBefore check = CheckHappensBefore(input_.collectives.table);
    clocks_agree_ = check.violations.empty();
    if (options_.allow_violations) return absl::OkStatus();
    return RefuseViolations(input_.collectives, check);
  }

  absl::Status MakeProfiledNodes() {
    WorkNodesOptions node_options;
    node_options.steps = options_.steps;
    ASSIGN_OR_RETURN(nodes_, MakeWorkNodes(input_.profiles, input_.collectives, node_options));
    RunGraph& graph = nodes_.graph;
    graph.has_one_clock = clocks_agree_;
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

  // One of the nodes that an instruction runs as tells its tensors: the one that bears its cost.
  static bool TellsTensors(const RunNode& node) {
    return node.instruction != nullptr && (node.bytes > 0 || node.IsCommunication());
  }

  // Numbers the tensors of each rank, program by program.
  void FindTensors() {
    for (const RunNode& node : nodes_.graph.nodes) {
      if (!TellsTensors(node)) continue;
      const HloModule& module = node.instruction->computation().module();
      std::unique_ptr<HloTensors>& tensors = tensors_[&module];
      if (tensors == nullptr)
        tensors =
            std::make_unique<HloTensors>(module, options_.intent == EtIntent::kPreTransformed);
      tensors->Add(*node.instruction);
      const int64_t rank = node.resource.rank;
      uint64_t& next_id = next_tensor_id_.try_emplace(rank, 1).first->second;
      if (first_tensor_id_.try_emplace({rank, &module}, next_id).second) {
        next_id += tensors->id_count();
      }
    }
  }

  void Decorate(const RunNode& node, ChakraProtoMsg::Node* message) const {
    if (TellsTensors(node)) {
      const HloModule* module = &node.instruction->computation().module();
      const int64_t rank = node.resource.rank;
      tensors_.at(module)->Describe(*node.instruction, node.operand,
                                    first_tensor_id_.at({rank, module}), rank, message);
    }
    EtAttributes* attributes = message->mutable_attr();
    if (node.type == ChakraProtoMsg::COMP_NODE && node.resource.kind != ResourceKind::kHostThread) {
      SetRoofline(node.operations, node.bytes, attributes);
    } else if (node.bytes > 0) {
      SetIntAttribute(kTensorSizeAttribute, node.bytes, attributes);
    }
    if (node.IsCommunication() && node.start_ns != kNoTimeNs) {
      SetIntAttribute(kRawDurationNsAttribute, node.end_ns - node.start_ns, attributes);
    }
    if (node.work == nullptr) return;
    if (!node.work->hlo_op.empty()) {
      SetStringAttribute(kHloOpAttribute, node.work->hlo_op, attributes);
    }
    if (!node.work->module.empty()) {
      SetStringAttribute(kHloModuleAttribute, node.work->module, attributes);
    }
  }

  // Of the kernels that one instruction ran as, one after the other, the first bears its cost.
  // Copies have one of their own. Must come before nodes are merged, so that those that stand for
  // many cost what all of them do.
  void SetCosts() {
    std::vector<RunNode>& nodes = nodes_.graph.nodes;
    std::map<Resource, NodeIndex> last;
    // Computing what an instruction costs takes longer than to remember it.
    absl::flat_hash_map<const HloInstruction*, HloCost> costs;
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      RunNode& node = nodes[i];
      const bool is_copy = node.work != nullptr && node.work->kind == WorkKind::kMemcpy;
      if (is_copy) node.bytes = node.work->copied_bytes;
      if (node.instruction != nullptr) {
        const auto [it, is_first] = last.emplace(node.resource, i);
        const RunNode& before = nodes[it->second];
        it->second = i;
        const bool goes_on = !is_first && node.work != nullptr && before.work != nullptr &&
                             before.instruction == node.instruction &&
                             before.work->run_id == node.work->run_id && before.work != node.work;
        const bool prepares = node.work != nullptr && node.work->prepares_collective;
        if (!goes_on && !prepares && !is_copy) {
          const auto [cost, is_new] = costs.try_emplace(node.instruction);
          if (is_new) cost->second = CostOf(*node.instruction);
          node.operations = cost->second.operations.value_or(0);
          node.bytes = cost->second.bytes.value_or(0);
        }
      }
      // As it is written for a roofline, so that sums are those of what is written.
      if (node.bytes > 0) node.operations = std::max<int64_t>(1, node.operations);
    }
  }

  void Describe(ChakraWorkloadReport* report) {
    const auto add_warnings = [&](const std::vector<std::string>& notes) {
      for (const std::string& note : notes) report->add_warnings(note);
    };
    add_warnings(input_.collectives.ranks.notes);
    // How executions were matched means nothing where there are none.
    if (!input_.collectives.table.instances().empty()) add_warnings(input_.collectives.runs.notes);
    add_warnings(nodes_.notes);
    for (ChakraWorkloadRank& rank : *report->mutable_ranks()) {
      const std::map<std::string, int64_t>& dropped = nodes_.dropped[rank.rank()];
      rank.mutable_left_out()->insert(dropped.begin(), dropped.end());
    }
  }

  const ProfiledRun& input_;
  const XSpaceExportOptions& options_;
  WorkNodes nodes_;
  RunWorkload workload_;
  bool clocks_agree_ = true;
  absl::flat_hash_map<const HloModule*, std::unique_ptr<HloTensors>> tensors_;
  // The first id of a program's tensors on a rank.
  absl::flat_hash_map<std::pair<int64_t, const HloModule*>, uint64_t> first_tensor_id_;
  absl::flat_hash_map<int64_t, uint64_t> next_tensor_id_;
};

}  // namespace

absl::StatusOr<XSpaceGraph> BuildXSpaceGraph(const ProfiledRun& run,
                                             const XSpaceExportOptions& options) {
  return Exporter(run, options).BuildGraph();
}

absl::StatusOr<ChakraWorkloadReport> ExportXSpaces(FileSystem& file_system,
                                                   const std::vector<std::string>& traces,
                                                   const std::string& prefix,
                                                   const XSpaceExportOptions& options) {
  ASSIGN_OR_RETURN(const ProfiledRun run, ReadProfiledRun(file_system, traces, options));
  return ExportXSpaces(file_system, run, prefix, options);
}

absl::StatusOr<ChakraWorkloadReport> ExportXSpaces(FileSystem& file_system, const ProfiledRun& run,
                                                   const std::string& prefix,
                                                   const XSpaceExportOptions& options) {
  return Exporter(run, options).Export(file_system, prefix);
}

}  // namespace meridian
