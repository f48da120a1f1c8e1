#include "cluster/replay/replay_output.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "cluster/replay/issue_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/xplane/plane_additions.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

constexpr char kModule[] = "chakra_replay";
constexpr uint64_t kProgramId = 1;
constexpr int64_t kPsPerNs = 1000;

absl::string_view OpcodeOf(const ExecutionGraph& graph, NodeIndex node) {
  if (graph.type(node) != ChakraProtoMsg::COMM_COLL_NODE) return "collective-permute";
  switch (graph.communication(node)->type) {
    case ChakraProtoMsg::ALL_GATHER:
      return "all-gather";
    case ChakraProtoMsg::ALL_TO_ALL:
      return "all-to-all";
    case ChakraProtoMsg::REDUCE_SCATTER:
    case ChakraProtoMsg::REDUCE_SCATTER_BLOCK:
      return "reduce-scatter";
    case ChakraProtoMsg::BROADCAST:
    case ChakraProtoMsg::SCATTER:
      return "collective-broadcast";
    case ChakraProtoMsg::REDUCE:
    case ChakraProtoMsg::GATHER:
      return "collective-reduce";
    default:
      return "all-reduce";
  }
}

std::string InstructionName(const ExecutionGraph& graph, const CommunicationMatch& match,
                            NodeIndex node) {
  const CommunicationMatch::Instance instance = match.instance_of(node);
  if (instance == CommunicationMatch::kNoInstance) {
    return absl::StrCat(graph.name(node), "#", graph.id(node));
  }
  return absl::StrCat(OpcodeOf(graph, node), ".", instance);
}

class ModuleWriter {
 public:
  ModuleWriter(const ExecutionGraph& graph, const CommunicationMatch& match, int64_t rank)
      : graph_(graph), match_(match), rank_(rank), ids_(graph.node_count(), 0) {}

  std::string Write() {
    module_ = proto_.mutable_hlo_module();
    module_->set_name(kModule);
    module_->set_entry_computation_name("main");
    module_->set_entry_computation_id(1);
    main_ = module_->add_computations();
    main_->set_name("main");
    main_->set_id(1);
    const std::vector<int64_t> ranks = graph_.Ranks();
    xla::DeviceAssignmentProto* assignment = module_->mutable_device_assignment();
    assignment->set_replica_count(1);
    assignment->set_computation_count(static_cast<int32_t>(ranks.size()));
    for (const int64_t rank : ranks) {
      assignment->add_computation_devices()->add_replica_device_ids(rank);
    }
    for (CommunicationMatch::Instance i = 0; i < match_.instance_count(); ++i) AddInstance(i);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (graph_.rank(node) != rank_ || graph_.communication(node) != nullptr) continue;
      ids_[node] = Add(InstructionName(graph_, match_, node), "custom-call", 0)->id();
    }
    AddDependencies();
    return proto_.SerializeAsString();
  }

 private:
  xla::HloInstructionProto* Add(const std::string& name, absl::string_view opcode, int64_t bytes) {
    xla::HloInstructionProto* instruction = main_->add_instructions();
    instruction->set_id(main_->instructions_size());
    instruction->set_name(name);
    instruction->set_opcode(std::string(opcode));
    instruction->mutable_shape()->set_element_type(xla::U8);
    instruction->mutable_shape()->add_dimensions(bytes);
    main_->set_root_id(instruction->id());
    return instruction;
  }

  int64_t OperandOf(int64_t bytes) {
    int64_t& id = operands_[bytes];
    if (id == 0) {
      xla::HloInstructionProto* operand = Add(absl::StrCat("bytes.", bytes), "parameter", bytes);
      operand->set_parameter_number(static_cast<int64_t>(operands_.size()) - 1);
      id = operand->id();
    }
    return id;
  }

  void AddInstance(CommunicationMatch::Instance instance) {
    const NodeIndex first = match_.members(instance)[0];
    const Communication& of = *graph_.communication(first);
    const absl::string_view opcode = OpcodeOf(graph_, first);
    const bool is_message = graph_.type(first) != ChakraProtoMsg::COMM_COLL_NODE;
    const int64_t members =
        is_message ? 2 : static_cast<int64_t>(graph_.groups()[of.group].ranks.size());
    const bool moves_nothing = !is_message && of.type == ChakraProtoMsg::BARRIER;
    const int64_t bytes = moves_nothing ? 0 : of.bytes;
    const int64_t output = opcode == "all-gather"       ? bytes * members
                           : opcode == "reduce-scatter" ? bytes / members
                                                        : bytes;
    const int64_t operand = OperandOf(bytes);
    xla::HloInstructionProto* instruction =
        Add(InstructionName(graph_, match_, first), opcode, output);
    instruction->add_operand_ids(operand);
    instruction->set_channel_id(static_cast<int64_t>(instance) + 1);
    if (is_message) {
      xla::SourceTarget* pair = instruction->add_source_target_pairs();
      pair->set_source(of.source);
      pair->set_target(of.target);
    } else {
      instruction->set_use_global_device_ids(true);
      xla::ReplicaGroup* group =
          instruction->mutable_collective_device_list()->add_replica_groups();
      for (const int64_t member : graph_.groups()[of.group].ranks) group->add_replica_ids(member);
    }
    for (const NodeIndex member : match_.members(instance)) ids_[member] = instruction->id();
  }

  void AddDependencies() {
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (graph_.rank(node) != rank_) continue;
      xla::HloInstructionProto* instruction =
          main_->mutable_instructions(static_cast<int>(ids_[node]) - 1);
      for (const NodeIndex source : graph_.dependencies(node)) {
        instruction->add_control_predecessor_ids(ids_[source]);
      }
    }
  }

  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const int64_t rank_;
  // The id of each node's instruction, by node; 0 until it has one.
  std::vector<int64_t> ids_;
  std::map<int64_t, int64_t> operands_;
  xla::HloProto proto_;
  xla::HloModuleProto* module_ = nullptr;
  xla::HloComputationProto* main_ = nullptr;
};

class HostPlane {
 public:
  HostPlane(XPlaneProto* plane, int64_t start_ns)
      : plane_(plane), metadata_(plane), start_ns_(start_ns) {
    plane->set_name(std::string(kHostThreadsPlaneName));
  }

  XLineProto* AddLine(const std::string& name) {
    XLineProto* line = plane_->add_lines();
    line->set_id(plane_->lines_size());
    line->set_name(name);
    return line;
  }

  XEventProto* AddEvent(const std::string& name, const ReplayedTimes& times, XLineProto* line) {
    XEventProto* event = line->add_events();
    event->set_metadata_id(metadata_.GetOrCreateEventMetadata(name)->id());
    event->set_offset_ps((times.start_ns - start_ns_) * kPsPerNs);
    event->set_duration_ps((times.end_ns - times.start_ns) * kPsPerNs);
    return event;
  }

  void AddStat(StatType type, int64_t value, XEventProto* event) {
    NewStat(type, event)->set_int64_value(value);
  }
  // The text is stored once.
  void AddStat(StatType type, const std::string& text, XEventProto* event) {
    const int64_t id = metadata_.GetOrCreateStatMetadata(text)->id();
    NewStat(type, event)->set_ref_value(static_cast<uint64_t>(id));
  }

 private:
  XStatProto* NewStat(StatType type, XEventProto* event) {
    XStatProto* stat = event->add_stats();
    stat->set_metadata_id(metadata_.GetOrCreateStatMetadata(type)->id());
    return stat;
  }

  XPlaneProto* plane_;
  PlaneMetadataBuilder metadata_;
  const int64_t start_ns_;
};

// A line of a thread or stream. Those that run several nodes at once have several lines, since
// events of one do not overlap.
struct Lane {
  XLineProto* line = nullptr;
  int64_t end_ns = 0;
};

XLineProto* FreeLine(const Resource& resource, const ReplayedTimes& times, HostPlane* host,
                     std::vector<Lane>* lanes) {
  auto lane = std::find_if(lanes->begin(), lanes->end(),
                           [&](const Lane& l) { return l.end_ns <= times.start_ns; });
  if (lane == lanes->end()) {
    std::string name = ResourceName(resource);
    if (!lanes->empty()) absl::StrAppend(&name, ", ", lanes->size() + 1);
    lane = lanes->insert(lanes->end(), {host->AddLine(name), 0});
  }
  lane->end_ns = times.end_ns;
  return lane->line;
}

void AddMetadata(const std::string& module, XSpaceProto* space) {
  XPlaneProto* plane = space->add_planes();
  plane->set_name(std::string(kMetadataPlaneName));
  PlaneMetadataBuilder metadata(plane);
  XEventMetadataProto* entry =
      metadata.GetOrCreateEventMetadata(absl::StrCat(kModule, "(", kProgramId, ")"));
  XStatProto* hlo = entry->add_stats();
  hlo->set_metadata_id(metadata.GetOrCreateStatMetadata(StatType::kHloProto)->id());
  hlo->set_bytes_value(module);
  XStatProto* id = entry->add_stats();
  id->set_metadata_id(metadata.GetOrCreateStatMetadata(StatType::kProgramId)->id());
  id->set_uint64_value(kProgramId);
}

}  // namespace

std::string ReplayProfile(const ExecutionGraph& graph, const CommunicationMatch& match,
                          int64_t rank, const std::string& hostname,
                          absl::Span<const ReplayedStep> steps) {
  const IssueOrder order(graph, rank);
  const int64_t start_ns = steps.front().span.start_ns;
  XSpaceProto space;
  space.add_hostnames(hostname);
  AddMetadata(ModuleWriter(graph, match, rank).Write(), &space);
  HostPlane host(space.add_planes(), start_ns);
  XLineProto* step_line = host.AddLine("steps");
  std::map<ResourceIndex, std::vector<Lane>> lanes;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto number = static_cast<int64_t>(s);
    host.AddStat(StatType::kStepNum, number, host.AddEvent("replay", steps[s].span, step_line));
    std::vector<NodeIndex> by_start(steps[s].nodes.size());
    for (size_t i = 0; i < by_start.size(); ++i) by_start[i] = static_cast<NodeIndex>(i);
    std::sort(by_start.begin(), by_start.end(), [&](NodeIndex a, NodeIndex b) {
      return std::make_tuple(steps[s].nodes[a].start_ns, a) <
             std::make_tuple(steps[s].nodes[b].start_ns, b);
    });
    for (const NodeIndex position : by_start) {
      const NodeIndex node = order.first_node() + position;
      const ReplayedTimes& times = steps[s].nodes[position];
      const std::string name = InstructionName(graph, match, node);
      XLineProto* line =
          FreeLine(graph.resource(node), times, &host, &lanes[graph.resource_index(node)]);
      XEventProto* event = host.AddEvent(name, times, line);
      host.AddStat(StatType::kHloOp, name, event);
      host.AddStat(StatType::kHloModule, kModule, event);
      host.AddStat(StatType::kProgramId, static_cast<int64_t>(kProgramId), event);
      host.AddStat(StatType::kDeviceOrdinal, rank, event);
      host.AddStat(StatType::kRunId, number + 1, event);
    }
  }
  XPlaneProto* environment = space.add_planes();
  environment->set_name(std::string(kTaskEnvPlaneName));
  PlaneMetadataBuilder task(environment);
  task.SetPlaneStat(StatType::kProfileStartTime, static_cast<uint64_t>(start_ns));
  task.SetPlaneStat(StatType::kProfileStopTime, static_cast<uint64_t>(steps.back().span.end_ns));
  return SerializeWithSortedMaps(space);
}

absl::Status WriteMeasuredTrace(FileSystem& file_system, const CommunicationMatch& match,
                                absl::Span<const ReplayedTimes> times,
                                absl::Span<const NodeCost> costs, const std::string& prefix,
                                ExecutionGraph* graph) {
  for (NodeIndex node = 0; node < graph->node_count(); ++node) {
    int64_t start_ns = times[node].start_ns;
    if (match.instance_of(node) != CommunicationMatch::kNoInstance) {
      for (const NodeIndex member : match.members(match.instance_of(node))) {
        start_ns = std::max(start_ns, times[member].start_ns);
      }
    }
    graph->set_duration_ns(node, std::max<int64_t>(0, times[node].end_ns - start_ns));
  }
  const auto decorate = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
    EtAttributes* attributes = message->mutable_attr();
    message->set_start_time_micros(static_cast<uint64_t>(times[node].start_ns / 1000));
    SetIntAttribute(kStartNsAttribute, times[node].start_ns, attributes);
    if (graph->communication(node) != nullptr) {
      SetIntAttribute(kRawDurationNsAttribute, times[node].end_ns - times[node].start_ns,
                      attributes);
    } else if (costs[node].operations > 0 || costs[node].bytes > 0) {
      SetRoofline(costs[node].operations, costs[node].bytes, attributes);
    }
  };
  return WriteEtWorkload(file_system, *graph, prefix, static_cast<int64_t>(graph->Ranks().size()),
                         {nullptr, decorate, nullptr})
      .status();
}

}  // namespace meridian
