#include "chakra_export/graph/et_graph_writer.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/sorted.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

std::vector<NodeIndex> ByRankAndId(const ExecutionGraph& graph) {
  std::vector<NodeIndex> nodes(graph.node_count());
  for (NodeIndex node = 0; node < nodes.size(); ++node) nodes[node] = node;
  const auto place = [&](NodeIndex node) {
    return std::make_tuple(graph.rank(node), graph.id(node), node);
  };
  StableSortUnlessSorted(&nodes, [&](NodeIndex a, NodeIndex b) { return place(a) < place(b); });
  return nodes;
}

class NodeEncoder {
 public:
  explicit NodeEncoder(const ExecutionGraph& graph)
      : graph_(graph), rounded_off_ns_(graph.resources().size(), 0) {}

  void Encode(NodeIndex node, Node* message) {
    message->Clear();
    message->set_id(graph_.id(node));
    message->set_name(graph_.name(node).data(), graph_.name(node).size());
    message->set_type(graph_.type(node));
    SetResource(graph_.resource(node), message->mutable_attr());
    if (graph_.communication(node) != nullptr) SetCommunication(node, message->mutable_attr());
    SetTimes(node, message);
    SetDependencies(node, message);
  }

 private:
  static void SetResource(const Resource& resource, EtAttributes* attributes) {
    const bool on_host = resource.kind == ResourceKind::kHostThread;
    SetBoolAttribute(kIsCpuOpAttribute, on_host, attributes);
    if (on_host) SetIntAttribute(kThreadAttribute, resource.number, attributes);
    if (resource.kind == ResourceKind::kStream) {
      SetIntAttribute(kStreamAttribute, resource.number, attributes);
    }
  }

  void SetCommunication(NodeIndex node, EtAttributes* attributes) const {
    const Communication& communication = *graph_.communication(node);
    SetIntAttribute(kCommSizeAttribute, communication.bytes, attributes);
    if (graph_.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
      SetIntAttribute(kCommTypeAttribute, communication.type, attributes);
      const std::string& group = graph_.groups()[communication.group].name;
      if (!group.empty()) SetStringAttribute(kPgNameAttribute, group, attributes);
      return;
    }
    if (communication.source != kNoRank) {
      SetIntAttribute(kCommSrcAttribute, communication.source, attributes);
    }
    if (communication.target != kNoRank) {
      SetIntAttribute(kCommDstAttribute, communication.target, attributes);
    }
    SetIntAttribute(kCommTagAttribute, communication.tag, attributes);
  }

  void SetTimes(NodeIndex node, Node* message) {
    const int64_t start_ns = graph_.start_ns(node);
    if (start_ns != kNoTimeNs) {
      if (start_ns > 0) message->set_start_time_micros(RoundToMicros(start_ns));
      SetIntAttribute(kStartNsAttribute, start_ns, message->mutable_attr());
    }
    int64_t& rounded_off_ns = rounded_off_ns_[graph_.resource_index(node)];
    const int64_t duration_ns = graph_.duration_ns(node);
    const uint64_t micros =
        duration_ns + rounded_off_ns > 0 ? RoundToMicros(duration_ns + rounded_off_ns) : 0;
    rounded_off_ns += duration_ns - static_cast<int64_t>(micros) * kNsPerMicro;
    message->set_duration_micros(micros);
    SetIntAttribute(kDurationNsAttribute, duration_ns, message->mutable_attr());
  }

  static uint64_t RoundToMicros(int64_t ns) {
    return static_cast<uint64_t>(ns / kNsPerMicro + (ns % kNsPerMicro >= kNsPerMicro / 2));
  }

  void SetDependencies(NodeIndex node, Node* message) const {
    for (const NodeIndex source : graph_.dependencies(node)) {
      MERIDIAN_CHECK(graph_.rank(source) == graph_.rank(node));
      message->add_data_deps(graph_.id(source));
    }
    const absl::Span<const EdgeKinds> kinds = graph_.dependency_kinds(node);
    const bool only_data =
        absl::c_all_of(kinds, [](EdgeKinds set) { return set == EdgeKind::kData; });
    if (only_data) return;
    SetStringAttribute(kDependencyKindsAttribute, EdgeKindsText(kinds), message->mutable_attr());
  }

  const ExecutionGraph& graph_;
  // What rounding has left over, by resource; goes into its next node.
  std::vector<int64_t> rounded_off_ns_;
};

void Describe(const EtNodeDecorator& shared, NodeIndex node, Node* message) {
  if (shared != nullptr) shared(node, message);
  CompleteForSimulators(message);
}

// Returns, as they are written, the fields that describe the node beside its own.
std::string SharedFields(const EtNodeDecorator& shared, NodeIndex node, Node whole) {
  const int own = whole.attr_size();
  Describe(shared, node, &whole);
  Node added;
  if (whole.has_inputs()) added.mutable_inputs()->Swap(whole.mutable_inputs());
  if (whole.has_outputs()) added.mutable_outputs()->Swap(whole.mutable_outputs());
  whole.mutable_attr()->DeleteSubrange(0, own);
  added.mutable_attr()->Swap(whole.mutable_attr());
  return added.SerializeAsString();
}

}  // namespace

absl::Status AddEtGraph(const ExecutionGraph& graph, const EtDecorators& decorators,
                        EtWorkloadWriter* writer) {
  const std::vector<NodeIndex> nodes = ByRankAndId(graph);
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);

  const std::vector<int64_t> ranks = graph.Ranks();
  const auto write_rank = [&](size_t position) -> absl::Status {
    ASSIGN_OR_RETURN(EtTrace trace, writer->Begin(ranks[position], metadata));
    NodeEncoder encoder(graph);
    Node message;
    // By kind, and whether the node waits for others, which decides on what simulators need.
    absl::flat_hash_map<std::pair<EtNodeKind, bool>, std::string> shared;
    for (auto node =
             std::partition_point(nodes.begin(), nodes.end(),
                                  [&](NodeIndex one) { return graph.rank(one) < ranks[position]; });
         node != nodes.end() && graph.rank(*node) == ranks[position]; ++node) {
      encoder.Encode(*node, &message);
      if (decorators.own != nullptr) decorators.own(*node, &message);
      std::optional<EtNodeKind> kind;
      if (decorators.kind_of != nullptr) kind = decorators.kind_of(*node);
      if (!kind.has_value()) {
        Describe(decorators.shared, *node, &message);
        RETURN_IF_ERROR(trace.Add(message));
        continue;
      }
      const auto [fields, is_new] = shared.try_emplace({*kind, message.data_deps_size() > 0});
      if (is_new) fields->second = SharedFields(decorators.shared, *node, message);
      RETURN_IF_ERROR(trace.Add(message, fields->second));
    }
    return writer->Finish(std::move(trace));
  };
  RETURN_IF_ERROR(ParallelFor(ranks.size(), write_rank));
  writer->AddGroups(GroupsOf(graph));
  return absl::OkStatus();
}

absl::StatusOr<ChakraWorkloadReport> WriteEtWorkload(FileSystem& file_system,
                                                     const ExecutionGraph& graph,
                                                     const std::string& prefix, int64_t rank_count,
                                                     const EtDecorators& decorators) {
  EtWorkloadWriter writer(file_system, prefix);
  RETURN_IF_ERROR(AddEtGraph(graph, decorators, &writer));
  return writer.Commit(rank_count);
}

CommGroups GroupsOf(const ExecutionGraph& graph) {
  CommGroups groups;
  for (const ProcessGroup& group : graph.groups()) {
    if (!group.name.empty()) groups.emplace(group.name, group.ranks);
  }
  return groups;
}

}  // namespace meridian
