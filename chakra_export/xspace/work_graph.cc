#include "chakra_export/xspace/work_graph.h"

#include <algorithm>
#include <map>

#include "absl/types/span.h"

namespace meridian {

WorkSources::WorkSources(const WorkGraph& graph) : begins_(graph.nodes.size() + 1, 0) {
  for (const WorkEdge& edge : graph.edges) ++begins_[edge.node + 1];
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  edges_.resize(graph.edges.size());
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  for (const WorkEdge& edge : graph.edges) edges_[next[edge.node]++] = edge;
}

void AddStreamOrder(WorkGraph* graph) {
  // Of a stream: the nodes that share the last start, and those that they wait for.
  struct Stream {
    std::vector<NodeIndex> last;
    std::vector<NodeIndex> before;
  };
  std::map<Resource, Stream> streams;
  for (NodeIndex node = 0; node < graph->nodes.size(); ++node) {
    const WorkNode& work = graph->nodes[node];
    Stream& stream = streams[work.resource];
    // A send and its receive are one kernel: they begin together.
    const bool is_same_kernel =
        !stream.last.empty() && work.work == graph->nodes[stream.last[0]].work;
    if (!is_same_kernel) {
      stream.before = std::move(stream.last);
      stream.last.clear();
    }
    for (const NodeIndex source : stream.before) {
      graph->edges.push_back({node, source, DependencyKind::kStream});
    }
    stream.last.push_back(node);
  }
}

ExecutionGraph ToExecutionGraph(const WorkGraph& graph, absl::Span<const NodeIndex> order) {
  ExecutionGraphBuilder builder;
  std::vector<GroupIndex> groups;
  for (const ProcessGroup& group : graph.groups) groups.push_back(builder.AddGroup(group));
  std::map<int64_t, uint64_t> next_id;
  std::vector<NodeIndex> places(graph.nodes.size(), kNoNode);
  for (const NodeIndex index : order) {
    const WorkNode& work = graph.nodes[index];
    GraphNode node;
    node.id = ++next_id[work.resource.rank];
    node.name = work.name;
    node.type = work.type;
    node.resource = builder.AddResource(work.resource);
    node.start_ns = work.start_ns;
    node.duration_ns = work.duration_ns;
    node.communication = work.communication;
    if (node.communication.has_value()) {
      node.communication->group = groups[node.communication->group];
    }
    places[index] = builder.AddNode(node);
  }
  for (const WorkEdge& edge : graph.edges) {
    builder.AddDependency(places[edge.node], places[edge.source], edge.kinds);
  }
  return std::move(builder).Build();
}

}  // namespace meridian
