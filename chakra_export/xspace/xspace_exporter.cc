#include "chakra_export/xspace/xspace_exporter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
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

// The tensors of a graph, numbered on each rank, program by program.
class RunTensors {
 public:
  RunTensors(const RunGraph& graph, EtIntent intent) {
    absl::flat_hash_map<const HloModule*, std::unique_ptr<HloTensors>> by_module;
    // By rank: the next id, and by program, too, the first.
    absl::flat_hash_map<int64_t, uint64_t> next_id;
    absl::flat_hash_map<std::pair<int64_t, const HloModule*>, uint64_t> first_ids;
    for (const RunNode& node : graph.nodes) {
      if (!TellsTensors(node)) continue;
      const auto [text, is_first] = texts_.try_emplace(KeyOf(node));
      if (!is_first) continue;
      const HloModule& module = node.instruction->computation().module();
      std::unique_ptr<HloTensors>& tensors = by_module[&module];
      if (tensors == nullptr) {
        tensors = std::make_unique<HloTensors>(module, intent == EtIntent::kPreTransformed,
                                               intent != EtIntent::kProfiled);
      }
      tensors->Add(*node.instruction);
      uint64_t& next = next_id.try_emplace(node.resource.rank, 1).first->second;
      const auto [first_id, is_new] = first_ids.try_emplace({node.resource.rank, &module}, next);
      if (is_new) next += tensors->id_count();
      tensors->Describe(*node.instruction, node.operand, first_id->second, node.resource.rank,
                        &text->second);
    }
  }

  void Describe(const RunNode& node, ChakraProtoMsg::Node* message) const {
    if (!TellsTensors(node)) return;
    const ChakraProtoMsg::Node& text = texts_.at(KeyOf(node));
    // Of a message one end reads, the other writes.
    if (text.has_inputs() && node.type != ChakraProtoMsg::COMM_RECV_NODE) {
      *message->mutable_inputs() = text.inputs();
    }
    if (text.has_outputs() && node.type != ChakraProtoMsg::COMM_SEND_NODE) {
      *message->mutable_outputs() = text.outputs();
    }
  }

 private:
  // What nodes with the same tensors have in common.
  using Key = std::tuple<int64_t, const HloInstruction*, int>;

  static Key KeyOf(const RunNode& node) {
    return {node.resource.rank, node.instruction, node.operand};
  }

  // One of the nodes that an instruction runs as tells its tensors: the one that bears its cost.
  static bool TellsTensors(const RunNode& node) {
    return node.instruction != nullptr && (node.bytes > 0 || node.IsCommunication());
  }

  // Nodes that hold nothing but the tensors.
  absl::flat_hash_map<Key, ChakraProtoMsg::Node> texts_;
};

class Exporter {
 public:
  Exporter(const ProfiledRun& input, const XSpaceExportOptions& options)
      : input_(input), options_(options), is_profiled_(options.intent == EtIntent::kProfiled) {
    node_options_.steps = options.steps;
  }

  absl::StatusOr<XSpaceGraph> BuildGraph() {
    RETURN_IF_ERROR(CheckInput());
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
    RETURN_IF_ERROR(CheckInput());
    // Hosts may begin before all devices, and ranks without a common clock have an order only
    // together.
    bool goes_by_rank = is_profiled_ && clocks_agree_ && options_.flavor == EtFlavor::kSimulation;
    if (goes_by_rank) {
      const absl::Status status = ExportByRank(files, prefix);
      // What ranks say only together, and what they contradict each other in, takes all of them.
      goes_by_rank = !absl::IsFailedPrecondition(status);
      if (goes_by_rank) RETURN_IF_ERROR(status);
    }
    if (!goes_by_rank) {
      workload_ = RunWorkload();
      RETURN_IF_ERROR(Build());
      RETURN_IF_ERROR(
          WriteRunWorkload(files, nodes_.graph, prefix, DecoratorsOf(nodes_.graph), &workload_));
    }
    Describe(&workload_.report);
    return std::move(workload_.report);
  }

 private:
  absl::Status CheckInput() {
    RETURN_IF_ERROR(CheckAgreement());
    return is_profiled_ ? CheckClocks() : absl::OkStatus();
  }

  absl::Status Build() {
    if (is_profiled_) {
      ASSIGN_OR_RETURN(nodes_, MakeWorkNodes(input_.profiles, input_.collectives, node_options_));
      Connect(&nodes_);
    } else {
      ASSIGN_OR_RETURN(nodes_, MakeProgramNodes(input_.profiles, input_.collectives,
                                                options_.intent == EtIntent::kPreTransformed));
      SetCosts(&nodes_.graph.nodes);
    }
    ASSIGN_OR_RETURN(workload_, MakeRunWorkload(options_.flavor, is_profiled_, &nodes_.graph));
    return absl::OkStatus();
  }

  // Makes and writes one rank after the other, so that only what the checks need is there of all.
  absl::Status ExportByRank(FileSystem& files, const std::string& prefix) {
    EtWorkloadWriter writer(files, prefix);
    std::mutex mutex;
    // What waits for ranks before it, of which `next` is the first.
    std::map<int64_t, RunWorkload> parts;
    int64_t next = 0;
    const auto export_rank = [&](int64_t rank, WorkNodes* nodes) -> absl::Status {
      Connect(nodes);
      RunGraph& graph = nodes->graph;
      ASSIGN_OR_RETURN(RunWorkload part,
                       BuildRunWorkload(options_.flavor, /*has_times=*/true, &graph));
      RETURN_IF_ERROR(AddRunWorkload(graph, part, DecoratorsOf(graph), &writer));
      const std::lock_guard<std::mutex> lock(mutex);
      parts[rank] = std::move(part);
      for (; !parts.empty() && parts.begin()->first == next; parts.erase(next++)) {
        workload_.report = parts.begin()->second.report;
        RETURN_IF_ERROR(workload_.graph.Append(parts.begin()->second.graph));
      }
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(nodes_, MakeWorkNodesByRank(input_.profiles, input_.collectives, node_options_,
                                                 export_rank));
    RETURN_IF_ERROR(CheckRunWorkload(options_.flavor, /*has_times=*/true, &workload_));
    ASSIGN_OR_RETURN(const ChakraWorkloadReport written, writer.Commit(nodes_.graph.rank_count));
    workload_.report.MergeFrom(written);
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
      return CheckOneRun(run);
    }
    return absl::OkStatus();
  }

  // Durations of collectives are differences of clocks, so the clocks must agree.
  absl::Status CheckClocks() {
    const HappensBefore check = CheckHappensBefore(input_.collectives.table);
    clocks_agree_ = check.violations.empty();
    if (options_.allow_violations) return absl::OkStatus();
    return RefuseViolations(input_.collectives, check);
  }

  // Adds what the nodes cost and wait for, and the host's nodes.
  void Connect(WorkNodes* nodes) const {
    RunGraph& graph = nodes->graph;
    graph.has_one_clock = clocks_agree_;
    AddDeviceDependencies(&graph);
    SetCosts(&graph.nodes);
    MergeWork(options_.granularity, &graph);
    const size_t device_nodes = graph.nodes.size();
    AddHostNodes(nodes->profile_of_rank, &graph);
    if (options_.flavor == EtFlavor::kFull && graph.nodes.size() == device_nodes) {
      nodes->notes.push_back(
          "the profiles hold no calls that launched device work, as those of XLA:CPU do not: "
          "--flavor=full adds no host nodes");
    }
  }

  EtDecorators DecoratorsOf(const RunGraph& graph) const {
    const auto tensors = std::make_shared<const RunTensors>(graph, options_.intent);
    EtDecorators decorators;
    decorators.shared = [&graph, tensors](NodeIndex node, ChakraProtoMsg::Node* message) {
      tensors->Describe(graph.nodes[node], message);
      Decorate(graph.nodes[node], message);
    };
    decorators.kind_of = [&graph](NodeIndex index) -> std::optional<EtNodeKind> {
      const RunNode& node = graph.nodes[index];
      // Communication has how long it lasted, and parts of a collective have tensors of their own.
      if (node.IsCommunication() || node.operand != RunNode::kAllOperands) return std::nullopt;
      const void* op = node.work == nullptr ? nullptr : node.work->op;
      return EtNodeKind(op, node.instruction, node.operations, node.bytes, node.op_kind,
                        node.type << 8 | static_cast<int32_t>(node.resource.kind));
    };
    return decorators;
  }

  static void Decorate(const RunNode& node, ChakraProtoMsg::Node* message) {
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
    const DeviceOp& op = *node.work->op;
    if (!op.hlo_op.empty()) SetStringAttribute(kHloOpAttribute, op.hlo_op, attributes);
    if (!op.module.empty()) SetStringAttribute(kHloModuleAttribute, op.module, attributes);
  }

  // Of the kernels that one instruction ran as, one after the other, the first bears its cost.
  // Copies have one of their own. Must come before nodes are merged, so that those that stand for
  // many cost what all of them do.
  static void SetCosts(std::vector<RunNode>* nodes) {
    std::map<Resource, NodeIndex> last;
    // Computing what an instruction costs takes longer than to remember it.
    absl::flat_hash_map<const HloInstruction*, HloCost> costs;
    for (NodeIndex i = 0; i < nodes->size(); ++i) {
      RunNode& node = (*nodes)[i];
      const bool is_copy = node.work != nullptr && node.work->op->kind == WorkKind::kMemcpy;
      if (is_copy) node.bytes = node.work->op->copied_bytes;
      if (node.instruction != nullptr) {
        const auto [it, is_first] = last.emplace(node.resource, i);
        const RunNode& before = (*nodes)[it->second];
        it->second = i;
        const bool goes_on = !is_first && node.work != nullptr && before.work != nullptr &&
                             before.instruction == node.instruction &&
                             before.work->run_id == node.work->run_id && before.work != node.work;
        const bool prepares = node.work != nullptr && node.work->op->prepares_collective;
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
    for (const auto& [what, count] : nodes_.counts) report->add_warnings(absl::StrCat(count, what));
    for (ChakraWorkloadRank& rank : *report->mutable_ranks()) {
      const std::map<std::string, int64_t>& dropped = nodes_.dropped[rank.rank()];
      rank.mutable_left_out()->insert(dropped.begin(), dropped.end());
    }
  }

  const ProfiledRun& input_;
  const XSpaceExportOptions& options_;
  const bool is_profiled_;
  WorkNodesOptions node_options_;
  WorkNodes nodes_;
  RunWorkload workload_;
  bool clocks_agree_ = true;
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
  ProfiledRunOptions reading = options;
  // Times only order the programs, for which those of one session are enough.
  reading.start_may_be_unknown = options.intent != EtIntent::kProfiled && traces.size() == 1;
  ASSIGN_OR_RETURN(const ProfiledRun run, ReadProfiledRun(file_system, traces, reading));
  return ExportXSpaces(file_system, run, prefix, options);
}

absl::StatusOr<ChakraWorkloadReport> ExportXSpaces(FileSystem& file_system, const ProfiledRun& run,
                                                   const std::string& prefix,
                                                   const XSpaceExportOptions& options) {
  return Exporter(run, options).Export(file_system, prefix);
}

}  // namespace meridian
