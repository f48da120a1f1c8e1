#include "critical_path/longest_path.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "critical_path/edge_index.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr EdgeId kNoEdge = std::numeric_limits<EdgeId>::max();

// Returns the joined nodes in the order in which edges first name them.
std::vector<NodeId> NodesInOrder(const PathGraph& graph) {
  std::vector<NodeId> order;
  std::vector<bool> seen(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) {
    for (NodeId node : {edge.from, edge.to}) {
      if (seen[node]) continue;
      seen[node] = true;
      order.push_back(node);
    }
  }
  return order;
}

std::string DescribeNode(const PathGraph& graph, NodeId id) {
  const GraphNode& node = graph.nodes[id];
  if (node.event == kNoEvent) return "the window's bound";
  return absl::StrCat("the ", node.is_start ? "start" : "end", " of '", graph.EventName(node.event),
                      "' (event ", graph.events[node.event].position, ")");
}

// Returns the nodes in topological order, or names one that is on a cycle.
absl::StatusOr<std::vector<NodeId>> SortTopologically(const PathGraph& graph) {
  const EdgeIndex outgoing(graph, &GraphEdge::from);
  std::vector<uint32_t> missing(graph.nodes.size());
  for (const GraphEdge& edge : graph.edges) ++missing[edge.to];
  const std::vector<NodeId> nodes = NodesInOrder(graph);
  std::vector<NodeId> sorted;
  sorted.reserve(nodes.size());
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(sorted),
               [&](NodeId node) { return missing[node] == 0; });
  // What is appended while one generation is walked is the next one.
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (EdgeId id : outgoing.Of(sorted[i])) {
      const NodeId to = graph.edges[id].to;
      if (--missing[to] == 0) sorted.push_back(to);
    }
  }
  if (sorted.size() == nodes.size()) return sorted;
  // Whoever still misses a predecessor that misses one itself: going back often enough ends on a
  // cycle.
  const EdgeIndex incoming(graph, &GraphEdge::to);
  NodeId node = *std::find_if(nodes.begin(), nodes.end(),
                              [&](NodeId candidate) { return missing[candidate] > 0; });
  for (size_t step = 0; step < nodes.size(); ++step) {
    for (EdgeId id : incoming.Of(node)) {
      if (missing[graph.edges[id].from] == 0) continue;
      node = graph.edges[id].from;
      break;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("events wait for each other in a circle, through ", DescribeNode(graph, node),
                   "; the trace's times or correlations contradict themselves"));
}

}  // namespace

std::vector<NodeId> PathNodes(const PathGraph& graph, const CriticalPath& path) {
  std::vector<NodeId> nodes = {graph.edges[path.edges.front()].from};
  for (EdgeId id : path.edges) nodes.push_back(graph.edges[id].to);
  return nodes;
}

absl::StatusOr<CriticalPath> FindLongestPath(const PathGraph& graph) {
  if (graph.edges.empty()) {
    return absl::FailedPreconditionError("no two events depend on each other: there is no path");
  }
  ASSIGN_OR_RETURN(const std::vector<NodeId> sorted, SortTopologically(graph));
  const EdgeIndex incoming(graph, &GraphEdge::to);
  std::vector<int64_t> length_ps(graph.nodes.size());
  std::vector<EdgeId> last_edge(graph.nodes.size(), kNoEdge);
  NodeId end = sorted.front();
  for (NodeId node : sorted) {
    for (EdgeId id : incoming.Of(node)) {
      const GraphEdge& edge = graph.edges[id];
      int64_t sum_ps = 0;
      if (__builtin_add_overflow(length_ps[edge.from], edge.weight_ps, &sum_ps)) {
        return absl::OutOfRangeError(
            absl::StrCat("the path is longer than 106 days at ", DescribeNode(graph, node)));
      }
      if (last_edge[node] != kNoEdge && sum_ps <= length_ps[node]) continue;
      length_ps[node] = sum_ps;
      last_edge[node] = id;
    }
    if (length_ps[node] > length_ps[end]) end = node;
  }
  // A path without time ends at once; then any edge will do.
  if (last_edge[end] == kNoEdge) end = graph.edges.front().to;
  if (graph.end_node.has_value()) end = *graph.end_node;

  CriticalPath path;
  path.length_ps = length_ps[end];
  for (NodeId node = end; last_edge[node] != kNoEdge; node = graph.edges[last_edge[node]].from) {
    path.edges.push_back(last_edge[node]);
  }
  std::reverse(path.edges.begin(), path.edges.end());
  if (path.edges.empty()) {
    return absl::FailedPreconditionError("nothing leads to the window's end: there is no path");
  }
  return path;
}

}  // namespace meridian
