#include "chakra_export/graph/execution_graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

static_assert(kComputationNode == ChakraProtoMsg::COMP_NODE);

constexpr size_t kMaxNameLength = 60;

char Letter(EdgeKind kind) { return kind == EdgeKind::kSync ? 'w' : EdgeKindName(kind)[0]; }

}  // namespace

absl::string_view EdgeKindName(EdgeKind kind) {
  static constexpr absl::string_view kNames[] = {"data",    "control", "stream",  "launch",
                                                 "program", "sync",    "inferred"};
  return kNames[static_cast<size_t>(kind)];
}

std::string EdgeKinds::Letters() const {
  std::string letters;
  for (const EdgeKind kind : kEdgeKinds) {
    if (Contains(kind)) letters.push_back(Letter(kind));
  }
  return letters;
}

std::optional<EdgeKinds> EdgeKinds::FromLetters(absl::string_view letters) {
  EdgeKinds kinds;
  for (const char letter : letters) {
    EdgeKinds known;
    for (const EdgeKind kind : kEdgeKinds) {
      if (Letter(kind) == letter) known = kind;
    }
    if (known.empty()) return std::nullopt;
    kinds |= known;
  }
  if (kinds.empty()) return std::nullopt;
  return kinds;
}

std::string EdgeKindsText(absl::Span<const EdgeKinds> sets) {
  return absl::StrJoin(sets, ",",
                       [](std::string* out, EdgeKinds kinds) { out->append(kinds.Letters()); });
}

std::optional<std::vector<EdgeKinds>> ParseEdgeKinds(absl::string_view text) {
  std::vector<EdgeKinds> sets;
  for (const absl::string_view letters : absl::StrSplit(text, ',')) {
    const std::optional<EdgeKinds> kinds = EdgeKinds::FromLetters(letters);
    if (!kinds.has_value()) return std::nullopt;
    sets.push_back(*kinds);
  }
  return sets;
}

std::string ResourceName(const Resource& resource) {
  switch (resource.kind) {
    case ResourceKind::kHostThread:
      return absl::StrCat("thread ", resource.number);
    case ResourceKind::kStream:
      return absl::StrCat("stream ", resource.number);
    case ResourceKind::kCompute:
      return "compute";
    case ResourceKind::kCommunication:
      return "communication";
  }
  return "";
}

bool IsCommunication(ChakraProtoMsg::NodeType type) {
  return type == ChakraProtoMsg::COMM_COLL_NODE || IsMessage(type);
}

bool IsMessage(ChakraProtoMsg::NodeType type) {
  return type == ChakraProtoMsg::COMM_SEND_NODE || type == ChakraProtoMsg::COMM_RECV_NODE;
}

std::vector<int64_t> ExecutionGraph::Ranks() const {
  std::vector<int64_t> ranks;
  for (const Resource& resource : resources_) ranks.push_back(resource.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

size_t ExecutionGraph::RetainDependencies(
    absl::FunctionRef<bool(NodeIndex node, size_t position)> keep) {
  uint32_t kept = 0;
  std::vector<bool> keeps;
  for (NodeIndex node = 0; node < node_count(); ++node) {
    const uint32_t first = first_dependency_[node];
    const size_t count = DependencyCount(node);
    keeps.assign(count, false);
    for (size_t i = 0; i < count; ++i) keeps[i] = keep(node, i);
    // The end of this node, which is the begin of the next, is still needed by the next.
    first_dependency_[node] = kept;
    for (size_t i = 0; i < count; ++i) {
      if (!keeps[i]) continue;
      sources_[kept] = sources_[first + i];
      kinds_[kept] = kinds_[first + i];
      ++kept;
    }
  }
  first_dependency_.back() = kept;
  const size_t removed = sources_.size() - kept;
  sources_.resize(kept);
  kinds_.resize(kept);
  return removed;
}

absl::Status ExecutionGraph::Append(const ExecutionGraph& other) {
  if (node_count() + other.node_count() >= kMaxNodes ||
      dependency_count() + other.dependency_count() >= kMaxDependencies) {
    return absl::OutOfRangeError("the run has over 2^32 nodes or edges; convert fewer ranks");
  }
  const auto append = [](const auto& from, auto* to, const auto& convert) {
    std::transform(from.begin(), from.end(), std::back_inserter(*to), convert);
  };
  const auto copy = [](const auto& from, auto* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  const auto plus = [](size_t offset) {
    return [offset](uint32_t id) { return static_cast<uint32_t>(id + offset); };
  };
  groups_ = other.groups_;
  std::vector<uint32_t> names(other.names_.size());
  for (uint32_t id = 0; id < names.size(); ++id) names[id] = names_.Intern(other.names_.Get(id));
  append(other.name_ids_, &name_ids_, [&](uint32_t id) { return names[id]; });
  append(other.communication_ids_, &communication_ids_, [this](uint32_t id) {
    return id == kNoCommunication ? id : static_cast<uint32_t>(id + communications_.size());
  });
  copy(other.communications_, &communications_);
  append(other.resource_ids_, &resource_ids_, plus(resources_.size()));
  copy(other.resources_, &resources_);
  first_dependency_.pop_back();
  append(other.first_dependency_, &first_dependency_, plus(sources_.size()));
  append(other.sources_, &sources_, plus(node_count()));
  copy(other.kinds_, &kinds_);
  copy(other.ids_, &ids_);
  copy(other.starts_ns_, &starts_ns_);
  copy(other.durations_ns_, &durations_ns_);
  copy(other.types_, &types_);
  return absl::OkStatus();
}

std::map<std::string, int64_t> ExecutionGraph::CountEdgeKinds() const {
  std::map<std::string, int64_t> counts;
  for (const EdgeKind kind : kEdgeKinds) {
    counts[std::string(EdgeKindName(kind))] =
        absl::c_count_if(kinds_, [kind](EdgeKinds set) { return set.Contains(kind); });
  }
  return counts;
}

std::string ExecutionGraph::CommunicationKind(NodeIndex node) const {
  switch (type(node)) {
    case ChakraProtoMsg::COMM_SEND_NODE:
      return "SEND";
    case ChakraProtoMsg::COMM_RECV_NODE:
      return "RECV";
    default:
      return ChakraProtoMsg::CollectiveCommType_Name(communication(node)->type);
  }
}

std::string ExecutionGraph::Describe(NodeIndex node) const {
  return absl::StrCat("rank ", rank(node), " node ", id(node), " (",
                      FirstCharacters(name(node), kMaxNameLength), ")");
}

bool ExecutionGraph::is_host_gap(NodeIndex node) const { return name(node) == kHostGapOpKind; }

std::optional<int64_t> MeasuredSpanNs(const ExecutionGraph& graph) {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const int64_t start_ns = graph.start_ns(node), duration_ns = graph.duration_ns(node);
    if (start_ns <= 0) {
      if (duration_ns > 0 && !graph.is_host_gap(node)) return std::nullopt;
      continue;
    }
    first_ns = std::min(first_ns, start_ns);
    last_ns = std::max(last_ns, start_ns + duration_ns);
  }
  if (last_ns < first_ns) return std::nullopt;
  return last_ns - first_ns;
}

ResourceIndex ExecutionGraphBuilder::AddResource(const Resource& resource) {
  // Nodes mostly follow others of their resource.
  const std::vector<Resource>& known = graph_.resources_;
  if (last_resource_ < known.size() && known[last_resource_] == resource) return last_resource_;
  const auto [it, added] =
      resource_indices_.emplace(resource, static_cast<ResourceIndex>(graph_.resources_.size()));
  if (added) graph_.resources_.push_back(resource);
  return last_resource_ = it->second;
}

GroupIndex ExecutionGraphBuilder::AddGroup(const ProcessGroup& group) {
  const auto [it, added] =
      group_indices_.emplace(group.name, static_cast<GroupIndex>(graph_.groups_.size()));
  if (added) graph_.groups_.push_back(group);
  MERIDIAN_CHECK(graph_.groups_[it->second].ranks == group.ranks);
  return it->second;
}

void ExecutionGraphBuilder::Reserve(size_t nodes) {
  graph_.ids_.reserve(nodes);
  graph_.starts_ns_.reserve(nodes);
  graph_.durations_ns_.reserve(nodes);
  graph_.name_ids_.reserve(nodes);
  graph_.resource_ids_.reserve(nodes);
  graph_.communication_ids_.reserve(nodes);
  graph_.types_.reserve(nodes);
}

NodeIndex ExecutionGraphBuilder::AddNode(const ExecutionNode& node) {
  MERIDIAN_CHECK(node_count() < ExecutionGraph::kMaxNodes && node.duration_ns >= 0);
  MERIDIAN_CHECK(node.resource < graph_.resources_.size());
  uint32_t communication = ExecutionGraph::kNoCommunication;
  if (node.communication.has_value()) {
    communication = static_cast<uint32_t>(graph_.communications_.size());
    graph_.communications_.push_back(*node.communication);
  }
  graph_.ids_.push_back(node.id);
  graph_.starts_ns_.push_back(node.start_ns);
  graph_.durations_ns_.push_back(node.duration_ns);
  graph_.name_ids_.push_back(graph_.names_.Intern(node.name));
  graph_.resource_ids_.push_back(node.resource);
  graph_.communication_ids_.push_back(communication);
  graph_.types_.push_back(static_cast<uint8_t>(node.type));
  return static_cast<NodeIndex>(node_count() - 1);
}

void ExecutionGraphBuilder::AddDependency(NodeIndex node, NodeIndex source, EdgeKinds kinds) {
  MERIDIAN_CHECK(pending_.size() < ExecutionGraph::kMaxDependencies && !kinds.empty());
  pending_.push_back({node, source, kinds});
}

void ExecutionGraphBuilder::AddDependencies(std::vector<DependencyEdge> edges) {
  MERIDIAN_CHECK(pending_.empty() && edges.size() <= ExecutionGraph::kMaxDependencies);
  for (const DependencyEdge& edge : edges) MERIDIAN_CHECK(!edge.kinds.empty());
  pending_ = std::move(edges);
}

ExecutionGraph ExecutionGraphBuilder::Build() && {
  const size_t nodes = node_count();
  for (NodeIndex node = 0; node < nodes; ++node) {
    MERIDIAN_CHECK(graph_.type(node) != ChakraProtoMsg::COMM_COLL_NODE ||
                   (graph_.communication(node) != nullptr &&
                    graph_.communication(node)->group < graph_.groups_.size()));
  }
  for (const DependencyEdge& edge : pending_) {
    MERIDIAN_CHECK(edge.node < nodes && edge.source < nodes);
  }
  const size_t dependencies = pending_.size();
  const EdgesByNode by_node(std::exchange(pending_, {}), nodes);
  graph_.first_dependency_.reserve(nodes + 1);
  graph_.sources_.reserve(dependencies);
  graph_.kinds_.reserve(dependencies);
  std::vector<DependencyEdge> edges;
  for (NodeIndex node = 0; node < nodes; ++node) {
    const absl::Span<const DependencyEdge> of_node = by_node.Of(node);
    edges.assign(of_node.begin(), of_node.end());
    std::sort(edges.begin(), edges.end(),
              [](const DependencyEdge& a, const DependencyEdge& b) { return a.source < b.source; });
    for (const DependencyEdge& edge : edges) {
      const bool is_known = graph_.sources_.size() > graph_.first_dependency_.back() &&
                            graph_.sources_.back() == edge.source;
      if (is_known) {
        graph_.kinds_.back() |= edge.kinds;
      } else {
        graph_.sources_.push_back(edge.source);
        graph_.kinds_.push_back(edge.kinds);
      }
    }
    graph_.first_dependency_.push_back(static_cast<uint32_t>(graph_.sources_.size()));
  }
  return std::move(graph_);
}

EdgesByNode::EdgesByNode(absl::Span<const DependencyEdge> edges, size_t node_count)
    : Buckets(node_count, [&](const auto& visit) {
        for (const DependencyEdge& edge : edges) visit(edge.node, edge);
      }) {}

SuccessorIndex::SuccessorIndex(const ExecutionGraph& graph)
    : Buckets(graph.node_count(), [&](const auto& visit) {
        for (NodeIndex node = 0; node < graph.node_count(); ++node) {
          for (const NodeIndex source : graph.dependencies(node)) visit(source, node);
        }
      }) {}

}  // namespace meridian
