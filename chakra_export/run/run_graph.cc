#include "chakra_export/run/run_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

void RunNode::SetCollective(int64_t comm_size, ChakraProtoMsg::CollectiveCommType kind,
                            GroupIndex group) {
  type = ChakraProtoMsg::COMM_COLL_NODE;
  communication = std::make_shared<Communication>(Communication{comm_size, kind, group});
}

void RunNode::SetMessage(bool is_send, int64_t comm_size, int64_t source, int64_t target,
                         int32_t tag) {
  type = is_send ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE;
  communication =
      std::make_shared<Communication>(Communication{comm_size, {}, 0, source, target, tag});
}

ProcessGroupList::ProcessGroupList(int64_t rank_count) : groups_(1) {
  for (int64_t rank = 0; rank < rank_count; ++rank) groups_[0].ranks.push_back(rank);
}

GroupIndex ProcessGroupList::Add(const std::vector<int64_t>& ranks) {
  // ASTRA-sim runs a group of all ranks as it runs the world, whatever its order.
  std::vector<int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == groups_[0].ranks) return 0;
  const auto [it, is_new] = known_.emplace(ranks, static_cast<GroupIndex>(groups_.size()));
  if (is_new) groups_.push_back({absl::StrCat(groups_.size()), ranks});
  return it->second;
}

void RunOutline::Add(const RunGraph& graph) {
  for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
    const RunNode& node = graph.nodes[i];
    if (node.IsDeviceWork()) {
      begin_ns = std::min(begin_ns, node.start_ns);
      end_ns = std::max(end_ns, node.end_ns);
    }
    if (!node.IsCommunication()) continue;
    Meeting& meeting = meetings[node.instance];
    ++meeting.nodes;
    if (!node.is_beside) ++meeting.own_nodes;
    if (node.type == ChakraProtoMsg::COMM_RECV_NODE || node.resource.rank >= meeting.rank) continue;
    meeting.rank = node.resource.rank;
    meeting.node = i;
    meeting.start_ns = node.start_ns;
  }
}

NodeIndex AddTimedNode(absl::string_view name, Resource resource, int64_t start_ns, int64_t end_ns,
                       RunGraph* graph) {
  RunNode& node = graph->nodes.emplace_back();
  node.name = name;
  node.resource = resource;
  node.start_ns = start_ns;
  node.end_ns = end_ns;
  node.duration_ns = end_ns - start_ns;
  return static_cast<NodeIndex>(graph->nodes.size() - 1);
}

NodeIndex AddGapNode(Resource resource, int64_t start_ns, int64_t end_ns, RunGraph* graph) {
  const NodeIndex gap = AddTimedNode(kHostGapOpKind, resource, start_ns, end_ns, graph);
  graph->nodes[gap].op_kind = kHostGapOpKind;
  return gap;
}

void AddWaitForKernel(NodeIndex node, NodeIndex work, RunGraph* graph) {
  const std::vector<RunNode>& nodes = graph->nodes;
  const uint32_t kernel = nodes[work].kernel;
  NodeIndex first = work, end = work + 1;
  if (kernel != RunNode::kNoKernel) {
    while (first > 0 && nodes[first - 1].kernel == kernel) --first;
    while (end < nodes.size() && nodes[end].kernel == kernel) ++end;
  }
  for (NodeIndex part = first; part < end; ++part) {
    graph->edges.push_back({node, part, EdgeKind::kSync});
  }
}

ExecutionGraph ToExecutionGraph(absl::Span<const NodeIndex> order, RunGraph* graph) {
  ExecutionGraphBuilder builder;
  builder.Reserve(order.size());
  std::vector<GroupIndex> groups;
  for (const ProcessGroup& group : graph->groups) groups.push_back(builder.AddGroup(group));
  std::map<int64_t, uint64_t> next_id;
  std::vector<NodeIndex> places(graph->nodes.size(), kNoNodeIndex);
  for (const NodeIndex index : order) {
    const RunNode& from = graph->nodes[index];
    ExecutionNode node;
    node.id = ++next_id[from.resource.rank];
    node.name = from.name;
    node.type = from.type;
    node.resource = builder.AddResource(from.resource);
    node.start_ns = from.start_ns;
    node.duration_ns = from.duration_ns;
    if (from.IsCommunication()) {
      node.communication = *from.communication;
      node.communication->group = groups[node.communication->group];
    }
    places[index] = builder.AddNode(node);
  }
  std::vector<DependencyEdge> edges = std::exchange(graph->edges, {});
  size_t kept = 0;
  for (const DependencyEdge& edge : edges) {
    if (places[edge.node] == kNoNodeIndex) continue;
    edges[kept++] = {places[edge.node], places[edge.source], edge.kinds};
  }
  edges.resize(kept);
  builder.AddDependencies(std::move(edges));
  return std::move(builder).Build();
}

}  // namespace meridian
