#include "critical_path/job/job_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/graph_replay.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/job/execution_job.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/optional_number.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns what the nodes of a collective, or a send and its receive, move.
std::optional<GraphTransfer> TransferOfNodes(const ExecutionGraph& graph,
                                             const std::vector<NodeIndex>& nodes) {
  const Communication& communication = *graph.communication(nodes[0]);
  GraphTransfer transfer;
  transfer.bytes = communication.bytes;
  if (IsMessage(graph.type(nodes[0]))) {
    transfer.kind = CollectiveKind::kPointToPoint;
    for (const int64_t rank : {communication.source, communication.target}) {
      transfer.ranks.push_back(static_cast<int32_t>(rank));
    }
    return transfer;
  }
  const std::optional<CollectiveKind> kind = CollectiveKindOf(communication.type);
  if (!kind.has_value()) return std::nullopt;
  transfer.kind = *kind;
  for (const int64_t rank : graph.groups()[communication.group].ranks) {
    transfer.ranks.push_back(static_cast<int32_t>(rank));
  }
  return transfer;
}

constexpr char kStepName[] = "step";

EventCategory CategoryOf(bool on_host, absl::string_view op_kind) {
  if (op_kind == kHostGapOpKind) return EventCategory::kUnknown;
  if (on_host) return EventCategory::kCpuOp;
  if (op_kind == kMemcpyOpKind) return EventCategory::kMemcpy;
  if (op_kind == kMemsetOpKind) return EventCategory::kMemset;
  return EventCategory::kKernel;
}

class EtJobLoader {
 public:
  explicit EtJobLoader(const JobOptions& options) : options_(options) {}

  absl::StatusOr<LoadedJob> Load(FileSystem& file_system, const JobInput& input) {
    const std::string& prefix = input.et_prefix;
    ASSIGN_OR_RETURN(const EtFiles found, FindEtFiles(file_system, prefix));
    RETURN_IF_ERROR(CheckNoRankIsMissing(found, prefix));
    EtGraphReaderOptions reader;
    reader.input = input.files;
    int64_t dangling = 0;
    reader.ignore_dangling = true;
    reader.dangling = &dangling;
    if (found.is_prefix) {
      ASSIGN_OR_RETURN(reader.groups, FindCommGroups(file_system, "", prefix));
    }
    reader.visit = [this](NodeIndex, const ChakraProtoMsg::Node& node) { return AddNode(node); };
    size_t read = 0;
    if (options_.progress) {
      reader.progress = [&](uint64_t bytes) { options_.progress(read += bytes); };
    }
    ASSIGN_OR_RETURN(execution_.graph, ReadEtGraph(file_system, found, reader));
    LoadedJob loaded;
    if (dangling > 0) {
      loaded.notes.push_back(
          absl::StrCat(WithThousands(dangling),
                       dangling == 1 ? " dependency is on a node" : " dependencies are on nodes",
                       " that the traces do not have: nothing waits for that here"));
    }
    LeaveOutBeginnings();
    RETURN_IF_ERROR(CheckAllRanks(&loaded.notes));
    RETURN_IF_ERROR(Replay());
    RETURN_IF_ERROR(ChooseWindows());
    ASSIGN_OR_RETURN(loaded.job, BuildExecutionJob(execution_, windows_));
    return loaded;
  }

 private:
  // Whoever communicates with the ranks must have a trace, too. No trace says how many ranks the
  // group of all ranks has, so the greatest rank that is named counts.
  absl::Status CheckAllRanks(std::vector<std::string>* notes) {
    const ExecutionGraph& graph = execution_.graph;
    const std::vector<int64_t> there = graph.Ranks();
    int64_t last = there.empty() ? 0 : there.back();
    for (const ProcessGroup& group : graph.groups()) {
      for (const int64_t rank : group.ranks) last = std::max(last, rank);
    }
    bool communicates = false;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Communication* communication = graph.communication(node);
      if (communication == nullptr) continue;
      communicates = true;
      last = std::max({last, communication->source, communication->target});
    }
    if (there.size() == 1 && communicates) {
      notes->push_back(
          "the times are those of one rank without the others: what it waited for them is left "
          "out");
    }
    return CheckRanks(there, last + 1, options_, notes);
  }

  absl::Status AddNode(const ChakraProtoMsg::Node& node) {
    ASSIGN_OR_RETURN(const std::optional<std::string> op_kind,
                     GetStringAttribute(node.attr(), kOpKindAttribute));
    ASSIGN_OR_RETURN(const std::optional<bool> on_host,
                     GetBoolAttribute(node.attr(), kIsCpuOpAttribute));
    TimedNode timed;
    ASSIGN_OR_RETURN(timed.step, GetIntAttribute(node.attr(), kStepAttribute));
    timed.bound_by =
        BoundByOf(op_kind.value_or(""), on_host.value_or(false), IsCommunication(node.type()));
    timed.category = CategoryOf(on_host.value_or(false), op_kind.value_or(""));
    timed.is_chosen = node.type() != ChakraProtoMsg::METADATA_NODE;
    execution_.nodes.push_back(timed);
    return absl::OkStatus();
  }

  // The gap that a rank begins with, since others began earlier, stands for what nobody knows of.
  void LeaveOutBeginnings() {
    for (NodeIndex node = 0; node < execution_.nodes.size(); ++node) {
      const bool is_first = execution_.graph.dependencies(node).empty();
      if (is_first && execution_.graph.is_host_gap(node)) execution_.nodes[node].is_chosen = false;
    }
  }

  absl::Status Replay() {
    const CommunicationMatch match(execution_.graph);
    ReplayOptions options;
    options.send_mode = SendMode::kRendezvousIfPossible;
    ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(execution_.graph, match, options));
    for (NodeIndex node = 0; node < execution_.nodes.size(); ++node) {
      execution_.nodes[node].start_ns = replay.starts_ns[node];
      execution_.nodes[node].end_ns = replay.ends_ns[node];
      execution_.nodes[node].cause = replay.causes[node];
    }
    for (size_t i = 0; i < match.instance_count(); ++i) {
      const absl::Span<const NodeIndex> members =
          match.members(static_cast<CommunicationMatch::Instance>(i));
      const std::vector<NodeIndex> all(members.begin(), members.end());
      if (all.size() > 1) AddMeeting(all, all, TransferOfNodes(execution_.graph, all), &execution_);
    }
    return absl::OkStatus();
  }

  absl::Status ChooseWindows() {
    if (options_.window.annotation.empty()) return absl::OkStatus();
    StepChoice choice;
    for (const TimedNode& node : execution_.nodes) {
      if (node.step.has_value()) choice.Add(kStepName, *node.step);
    }
    ASSIGN_OR_RETURN(const NumberRange steps, choice.Choose(options_.window));
    for (NodeIndex index = 0; index < execution_.nodes.size(); ++index) {
      TimedNode& node = execution_.nodes[index];
      if (!node.step.has_value()) continue;
      if (*node.step > steps.last) node.is_chosen = false;
      // Work of an earlier step belongs to none of the chosen ones.
      if (*node.step < steps.first) node.step = OptionalNumber();
      // A gap may last until something of the next step.
      if (!node.step.has_value() || !steps.Contains(*node.step) ||
          execution_.graph.is_host_gap(index)) {
        continue;
      }
      const auto [window, is_new] =
          windows_.emplace(execution_.graph.rank(index), RankWindow{node.start_ns, node.end_ns});
      window->second.start_ns = std::min(window->second.start_ns, node.start_ns);
      window->second.end_ns = std::max(window->second.end_ns, node.end_ns);
    }
    // A rank that has none of the steps has no part in the window.
    for (NodeIndex index = 0; index < execution_.nodes.size(); ++index) {
      if (windows_.count(execution_.graph.rank(index)) == 0) {
        execution_.nodes[index].is_chosen = false;
      }
    }
    return absl::OkStatus();
  }

  const JobOptions& options_;
  TimedExecution execution_;
  std::map<int64_t, RankWindow> windows_;
};

}  // namespace

absl::StatusOr<LoadedJob> LoadEtJob(FileSystem& file_system, const JobInput& input,
                                    const JobOptions& options) {
  return EtJobLoader(options).Load(file_system, input);
}

}  // namespace meridian
