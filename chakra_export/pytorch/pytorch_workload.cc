#include "chakra_export/pytorch/pytorch_workload.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/pytorch/host_device_link.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/linked_json.h"
#include "chakra_export/pytorch/matched_communication.h"
#include "chakra_export/pytorch/op_tensors.h"
#include "chakra_export/pytorch/operator_nodes.h"
#include "chakra_export/pytorch/pytorch_nodes.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/run/run_workload.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/utf8.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {
namespace {

// PyTorch's name of the process group.
constexpr absl::string_view kProcessGroupAttribute = "process_group";

// Attributes that host nodes keep from the host trace, beside rf_id.
constexpr absl::string_view kNumberAttributes[] = {"fw_parent", "seq_id", "scope", "fw_tid"};

// Times of this and 106 days more still fit into 64 bits of nanoseconds.
constexpr int64_t kMaxBaseNs = 9'000'000'000'000'000'000;

// Returns JSON as a Python literal of what it holds, ["a", None, True] of ["a",null,true]: IOInfo's
// fields are such. Texts stay as JSON writes them, which Python reads, too.
std::string PythonLiteral(absl::string_view json) {
  std::string literal;
  while (!json.empty()) {
    size_t length = 1;
    if (json[0] == '"') {
      while (length < json.size() && json[length] != '"') length += json[length] == '\\' ? 2 : 1;
      length = std::min(length + 1, json.size());
      absl::StrAppend(&literal, json.substr(0, length));
    } else if (absl::ascii_isalpha(json[0])) {
      while (length < json.size() && absl::ascii_isalpha(json[length])) ++length;
      const absl::string_view word = json.substr(0, length);
      absl::StrAppend(&literal, word == "true"       ? "True"
                                : word == "false"    ? "False"
                                : word == "null"     ? "None"
                                : word == "NaN"      ? "nan"
                                : word == "Infinity" ? "inf"
                                                     : word);
    } else if (!absl::ascii_isspace(json[0])) {
      literal.push_back(json[0]);
      if (json[0] == ',' || json[0] == ':') literal.push_back(' ');
    }
    json.remove_prefix(length);
  }
  return literal;
}

// One rank's traces. The files stay mapped, since the trace and the table point into them.
struct RankTraces {
  // Absent when there is the profile alone: then the host trace is empty.
  std::optional<InputFile> host_file;
  std::optional<InputFile> device_file;
  HostTrace host;
  TraceJsonTable device;
  HostDeviceLink link;
  RankTimeline timeline;
};

absl::StatusOr<RankTraces> ReadRank(FileSystem& file_system, const std::string& host_path,
                                    const std::string& device_path,
                                    const InputFileOptions& options) {
  RankTraces rank;
  if (!host_path.empty()) {
    ASSIGN_OR_RETURN(rank.host_file, InputFile::Open(file_system, host_path, options));
    ASSIGN_OR_RETURN(rank.host, ReadHostTrace(rank.host_file->bytes(), host_path));
  }
  ASSIGN_OR_RETURN(rank.device_file, InputFile::Open(file_system, device_path, options));
  const absl::string_view text = rank.device_file->bytes();
  ASSIGN_OR_RETURN(rank.device, LoadTraceJson(text, device_path));
  RETURN_IF_ERROR(CheckOneRank(rank.device, device_path));
  if (rank.device.table.base_ns() > kMaxBaseNs || rank.device.table.base_ns() < -kMaxBaseNs) {
    return InvalidArgument(device_path, ": its times lie beyond the year 2255");
  }
  rank.link = LinkHostTrace(rank.host, rank.device.table, text);
  if (rank.host_file.has_value() && rank.link.host_events > 0) {
    RETURN_IF_ERROR(Annotate(CheckLink(rank.host, rank.device.table, rank.link), host_path));
  }
  rank.timeline = BuildRankTimeline(rank.device.table, text, rank.link);
  AddTensorDependencies(rank.host, &rank.timeline);
  if (absl::c_all_of(rank.timeline.nodes, [](const TimelineNode& node) { return node.on_host; })) {
    return InvalidArgument(
        device_path,
        ": no kernel, copy or set in it; expected what torch.profiler's export_chrome_trace wrote "
        "with ProfilerActivity.CUDA among its activities");
  }
  return rank;
}

// Logs of collectives come as such profiles.
bool HoldsOnlyCommunication(const RankTraces& rank) {
  const EventTable& table = rank.device.table;
  return absl::c_all_of(rank.timeline.nodes, [&](const TimelineNode& node) {
    return node.on_host || IsCommunicationKernel(table.name(node.row));
  });
}

absl::Status CheckRanksAreComplete(const MatchedCommunication& communication,
                                   const std::vector<std::string>& device_traces) {
  if (device_traces.size() == 1) return absl::OkStatus();
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < communication.world_size; ++rank) {
    const bool is_there = absl::c_any_of(
        communication.ranks, [&](const RankCommunication& other) { return other.rank == rank; });
    if (!is_there && missing.size() < 10) missing.push_back(rank);
  }
  if (missing.empty()) return absl::OkStatus();
  return InvalidArgument(device_traces[0], ": the run has ", communication.world_size,
                         " ranks, but there is no trace of rank ", absl::StrJoin(missing, ", "),
                         "; give the traces of all ranks, or one alone");
}

// Adds to the nodes of Chakra traces what the graph does not hold.
class Decorator {
 public:
  Decorator(const std::vector<RankTraces>& ranks, const MatchedCommunication& communication,
            const PytorchNodes& nodes, EtFlavor flavor)
      : ranks_(ranks), communication_(communication), nodes_(nodes), flavor_(flavor) {
    for (const RankTraces& rank : ranks) cost_bearers_.push_back(CostBearers(rank));
  }

  void Decorate(NodeIndex run_node, ChakraProtoMsg::Node* message) const {
    // Gaps and tables of groups have no origin.
    if (run_node >= nodes_.origins.size()) return;
    const NodeOrigin& origin = nodes_.origins[run_node];
    const TimelineNode& node = ranks_[origin.input].timeline.nodes[origin.node];
    if (node.on_host) {
      DecorateHostNode(ranks_[origin.input], node, message);
    } else {
      DecorateDeviceNode(origin, node, message);
    }
  }

  static void SetTensors(const HostOpDetails& details, ChakraProtoMsg::Node* message) {
    SetTensors(details.inputs, message->mutable_inputs());
    if (message->inputs().ByteSizeLong() == 0) message->clear_inputs();
    SetTensors(details.outputs, message->mutable_outputs());
    if (message->outputs().ByteSizeLong() == 0) message->clear_outputs();
  }

 private:
  void DecorateHostNode(const RankTraces& rank, const TimelineNode& node,
                        ChakraProtoMsg::Node* message) const {
    if (node.row == kNoRow) return;
    const HostOpIndex op = rank.link.op_of_row[node.row];
    if (op == kNoHostOp) return;
    const HostOpDetails details = rank.host.Details(op);
    SetIntAttribute(kRecordFunctionIdAttribute,
                    static_cast<int64_t>(rank.host.ops()[op].record_function_id),
                    message->mutable_attr());
    details.ForEachAttribute([message](absl::string_view name, JsonValue value) {
      if (name == kOpSchemaAttribute) {
        const std::optional<std::string> schema = value.AsString();
        if (!schema.has_value() || schema->empty()) return;
        SetStringAttribute(kOpSchemaAttribute, *schema, message->mutable_attr());
      } else if (absl::c_linear_search(kNumberAttributes, name)) {
        const std::optional<int64_t> number = value.AsInt64();
        if (number.has_value()) SetIntAttribute(name, *number, message->mutable_attr());
      }
    });
    SetTensors(details, message);
  }

  void DecorateDeviceNode(const NodeOrigin& origin, const TimelineNode& node,
                          ChakraProtoMsg::Node* message) const {
    const RankTraces& rank = ranks_[origin.input];
    const RankCommunication& communication = communication_.ranks[origin.input];
    const auto matched = communication.nodes.find(origin.node);
    if (matched != communication.nodes.end()) {
      SetStringAttribute(kProcessGroupAttribute, matched->second[0].process_group,
                         message->mutable_attr());
      SetIntAttribute(kRawDurationNsAttribute, node.duration_ps / 1000, message->mutable_attr());
    }
    AddCost(origin, message);
    if (node.launching_op == kNoHostOp || flavor_ != EtFlavor::kFull) return;
    SetIntAttribute(kRecordFunctionIdAttribute,
                    static_cast<int64_t>(rank.host.ops()[node.launching_op].record_function_id),
                    message->mutable_attr());
  }

  // Of the kernels that one operator launched the first bears its cost. Returns these kernels by
  // node, each with the operator whose tensors tell the cost.
  static absl::flat_hash_map<TimelineIndex, HostOpIndex> CostBearers(const RankTraces& rank) {
    absl::flat_hash_map<TimelineIndex, HostOpIndex> bearers;
    absl::flat_hash_set<HostOpIndex> borne;
    for (TimelineIndex i = 0; i < rank.timeline.nodes.size(); ++i) {
      const HostOpIndex op = rank.timeline.nodes[i].tensor_op;
      if (op != kNoHostOp && borne.insert(op).second) bearers.emplace(i, op);
    }
    return bearers;
  }

  void AddCost(const NodeOrigin& origin, ChakraProtoMsg::Node* message) const {
    const auto bearer = cost_bearers_[origin.input].find(origin.node);
    if (bearer == cost_bearers_[origin.input].end()) return;
    const HostTrace& host = ranks_[origin.input].host;
    const HostOpDetails details = host.Details(bearer->second);
    SetTensors(details, message);
    const OpCost cost = CostOfOperator(host.name(bearer->second), details);
    if (message->type() == ChakraProtoMsg::COMP_NODE) {
      SetRoofline(cost.operations.value_or(0), cost.bytes, message->mutable_attr());
    }
  }

  static void SetTensors(const HostOpTensors& tensors, ChakraProtoMsg::IOInfo* info) {
    if (IsWorthKeeping(tensors.values)) info->set_values(PythonLiteral(tensors.values.text()));
    if (IsWorthKeeping(tensors.shapes)) info->set_shapes(PythonLiteral(tensors.shapes.text()));
    if (IsWorthKeeping(tensors.types)) info->set_types(PythonLiteral(tensors.types.text()));
  }

  // Empty lists are most of them; text that is not UTF-8 no message may hold.
  static bool IsWorthKeeping(JsonValue value) {
    return value.text().size() > 2 && IsValidUtf8(value.text());
  }

  const std::vector<RankTraces>& ranks_;
  const MatchedCommunication& communication_;
  const PytorchNodes& nodes_;
  const EtFlavor flavor_;
  // CostBearers of each input.
  std::vector<absl::flat_hash_map<TimelineIndex, HostOpIndex>> cost_bearers_;
};

// Says what of a rank's traces is not in its nodes as it was.
void DescribeLeftOut(const RankTraces& rank, const std::map<std::string, int64_t>& lowered,
                     google::protobuf::Map<std::string, int64_t>* left_out) {
  const auto add = [&](const std::string& reason, int64_t count) {
    if (count > 0) (*left_out)[reason] = count;
  };
  if (rank.host_file.has_value()) {
    add("operators without an event", absl::c_count(rank.link.row_of_op, kNoRow));
    add("host events without an operator", rank.link.host_events - rank.link.linked);
    add("device work without an operator",
        absl::c_count_if(rank.timeline.nodes, [](const TimelineNode& node) {
          return !node.on_host && node.launching_op == kNoHostOp;
        }));
  }
  add("edges against the measured times", rank.timeline.edges_against_time);
  for (const auto& [reason, count] : lowered) {
    add(absl::StrCat("communication made computation: ", reason), count);
  }
}

void AddWarnings(const std::vector<RankTraces>& ranks, const MatchedCommunication& communication,
                 const PytorchNodes& nodes, ChakraWorkloadReport* report) {
  if (nodes.approximated > 0) {
    report->add_warnings(
        absl::StrCat(nodes.approximated,
                     " x collectives became the nearest that ASTRA-sim simulates, of the same "
                     "bytes"));
  }
  for (const std::string& note : communication.notes) {
    report->add_warnings(std::string(absl::StripPrefix(note, "warning: ")));
  }
  if (ranks.size() == 1 && communication.world_size > 1) {
    report->add_warnings(absl::StrCat("this is one of ", communication.world_size,
                                      " ranks; simulators want the traces of all"));
  }
  for (const RankTraces& rank : ranks) {
    if (rank.host_file.has_value() && rank.link.linked == 0) {
      report->add_warnings(absl::StrCat(rank.host_file->path(), ": no operator of it is in ",
                                        rank.device_file->path(), ", which shows no host"));
    }
    if (rank.device.problems.total() > 0) {
      report->add_warnings(
          absl::StrCat(rank.device_file->path(), ": ", rank.device.problems.ToString()));
    }
  }
}

// Writes files that are not seen before they are committed.
absl::Status AddLinkedJsons(FileSystem& file_system, const std::vector<RankTraces>& ranks,
                            const MatchedCommunication& communication, const std::string& prefix,
                            AtomicFileBatch* files) {
  for (size_t i = 0; i < ranks.size() && !prefix.empty(); ++i) {
    const std::string path = absl::StrCat(prefix, ".", communication.ranks[i].rank, ".json");
    ASSIGN_OR_RETURN(std::unique_ptr<AtomicFileWriter> file,
                     AtomicFileWriter::CreateWithFolder(file_system, path));
    RETURN_IF_ERROR(WriteLinkedJson(ranks[i].host, ranks[i].device.table, ranks[i].link,
                                    ranks[i].timeline, communication.ranks[i], file.get()));
    RETURN_IF_ERROR(files->Add(std::move(file)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ChakraWorkloadReport> ConvertOperators(FileSystem& file_system,
                                                      const std::vector<RankTraces>& ranks,
                                                      const MatchedCommunication& communication,
                                                      const std::string& output_prefix,
                                                      EtFlavor flavor) {
  std::vector<OperatorInput> inputs;
  for (size_t i = 0; i < ranks.size(); ++i) {
    inputs.push_back({&ranks[i].host, &ranks[i].timeline, &communication.ranks[i]});
  }
  ASSIGN_OR_RETURN(OperatorNodes nodes,
                   MakeOperatorNodes(inputs, flavor, communication.world_size));
  ASSIGN_OR_RETURN(RunWorkload workload,
                   MakeRunWorkload(flavor, /*has_times=*/false, &nodes.graph));
  const auto decorate = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
    // Tables of groups have no origin.
    if (node >= nodes.origins.size()) return;
    const OperatorNodes::Origin& origin = nodes.origins[node];
    Decorator::SetTensors(ranks[origin.input].host.Details(origin.op), message);
    if (message->type() == ChakraProtoMsg::COMP_NODE) {
      SetRoofline(origin.cost.operations.value_or(0), origin.cost.bytes, message->mutable_attr());
    }
  };
  RETURN_IF_ERROR(WriteRunWorkload(file_system, nodes.graph, output_prefix,
                                   {nullptr, decorate, nullptr}, &workload));
  if (nodes.lost > 0) {
    workload.report.add_warnings(
        absl::StrCat(nodes.lost, " x communication left out: no operator launched it"));
  }
  AddWarnings(ranks, communication, PytorchNodes(), &workload.report);
  return std::move(workload.report);
}

}  // namespace

absl::StatusOr<ChakraWorkloadReport> ConvertPytorchWorkload(
    FileSystem& file_system, const std::vector<std::string>& host_traces,
    const std::vector<std::string>& device_traces, const std::string& output_prefix,
    const PytorchWorkloadOptions& options) {
  const bool has_hosts = !host_traces.empty();
  if (has_hosts && host_traces.size() != device_traces.size()) {
    return InvalidArgument("there are ", host_traces.size(), " host traces, but ",
                           device_traces.size(),
                           " device traces; expected one of each for every rank, or device traces "
                           "alone");
  }
  if (options.pre_transformed && (!has_hosts || !options.linked_json_prefix.empty())) {
    return InvalidArgument(
        "what a program asked for (--intent=pre_transformed) is in its execution traces; give "
        "those "
        "with the profiles, and no --linked_json");
  }
  if (!has_hosts && !options.linked_json_prefix.empty()) {
    return InvalidArgument("joined traces (", options.linked_json_prefix,
                           ".<rank>.json) need execution traces of PyTorch beside the profiles");
  }
  std::vector<RankTraces> ranks;
  std::vector<RankCollectives> collectives;
  for (size_t i = 0; i < device_traces.size(); ++i) {
    if (options.progress != nullptr) options.progress(i);
    ASSIGN_OR_RETURN(RankTraces rank, ReadRank(file_system, has_hosts ? host_traces[i] : "",
                                               device_traces[i], options.input));
    collectives.push_back(ReadRankCollectives(rank.device, rank.device_file->bytes(),
                                              device_traces[i], rank.timeline));
    ForgetMapped(rank.device_file->bytes());
    if (rank.host_file.has_value()) ForgetMapped(rank.host_file->bytes());
    ranks.push_back(std::move(rank));
  }
  if (!has_hosts && absl::c_all_of(ranks, HoldsOnlyCommunication)) {
    return FailedPrecondition(
        device_traces[0],
        ": it holds collectives alone, not the work between them, which Chakra traces consist of");
  }
  ASSIGN_OR_RETURN(const MatchedCommunication communication,
                   MatchCommunication(std::move(collectives), options.allow_violations));
  RETURN_IF_ERROR(CheckRanksAreComplete(communication, device_traces));
  if (options.pre_transformed) {
    return ConvertOperators(file_system, ranks, communication, output_prefix, options.flavor);
  }

  std::vector<RankInput> inputs;
  for (size_t i = 0; i < ranks.size(); ++i) {
    inputs.push_back({&ranks[i].device.table, &ranks[i].timeline, &communication.ranks[i]});
  }
  ASSIGN_OR_RETURN(PytorchNodes nodes, MakePytorchNodes(inputs, options.flavor, communication));
  ASSIGN_OR_RETURN(RunWorkload workload,
                   MakeRunWorkload(options.flavor, /*has_times=*/true, &nodes.graph));
  const Decorator decorator(ranks, communication, nodes, options.flavor);
  AtomicFileBatch linked_jsons(file_system);
  RETURN_IF_ERROR(
      AddLinkedJsons(file_system, ranks, communication, options.linked_json_prefix, &linked_jsons));
  const auto decorate = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
    decorator.Decorate(node, message);
  };
  RETURN_IF_ERROR(WriteRunWorkload(file_system, nodes.graph, output_prefix,
                                   {nullptr, decorate, nullptr}, &workload));
  RETURN_IF_ERROR(linked_jsons.Commit());

  AddWarnings(ranks, communication, nodes, &workload.report);
  for (ChakraWorkloadRank& rank : *workload.report.mutable_ranks()) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (communication.ranks[i].rank != rank.rank()) continue;
      DescribeLeftOut(ranks[i], nodes.lowered[i], rank.mutable_left_out());
    }
  }
  return std::move(workload.report);
}

}  // namespace meridian
