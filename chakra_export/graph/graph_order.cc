#include "chakra_export/graph/graph_order.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

// A description names so many nodes at either end.
constexpr size_t kNamedAtEachEnd = 4;

// Returns an order of as many nodes as have one; `waiting` is left with how many dependencies of
// each node are not in it.
std::vector<NodeIndex> OrderWhatCanBe(const ExecutionGraph& graph, std::vector<uint32_t>* waiting) {
  const auto nodes = static_cast<NodeIndex>(graph.node_count());
  const SuccessorIndex successors(graph);
  std::vector<NodeIndex> order;
  order.reserve(nodes);
  waiting->resize(nodes);
  for (NodeIndex node = 0; node < nodes; ++node) {
    (*waiting)[node] = static_cast<uint32_t>(graph.dependencies(node).size());
    if ((*waiting)[node] == 0) order.push_back(node);
  }
  for (size_t done = 0; done < order.size(); ++done) {
    for (const NodeIndex next : successors.Of(order[done])) {
      if (--(*waiting)[next] == 0) order.push_back(next);
    }
  }
  return order;
}

// Every node that waits for something has a dependency that waits, too: going back from one to the
// next must come round.
std::vector<NodeIndex> CycleAmong(const ExecutionGraph& graph,
                                  const std::vector<uint32_t>& waiting) {
  const auto first = std::find_if(waiting.begin(), waiting.end(), [](uint32_t n) { return n > 0; });
  if (first == waiting.end()) return {};
  std::vector<NodeIndex> walk;
  std::vector<bool> visited(waiting.size(), false);
  auto node = static_cast<NodeIndex>(first - waiting.begin());
  while (!visited[node]) {
    visited[node] = true;
    walk.push_back(node);
    const absl::Span<const NodeIndex> sources = graph.dependencies(node);
    node = *std::find_if(sources.begin(), sources.end(),
                         [&](NodeIndex source) { return waiting[source] > 0; });
  }
  return std::vector<NodeIndex>(std::find(walk.begin(), walk.end(), node), walk.end());
}

}  // namespace

absl::StatusOr<std::vector<NodeIndex>> TopologicalOrder(const ExecutionGraph& graph) {
  std::vector<uint32_t> waiting;
  std::vector<NodeIndex> order = OrderWhatCanBe(graph, &waiting);
  if (order.size() == graph.node_count()) return order;
  return absl::FailedPreconditionError(
      absl::StrCat("a cycle: ", DescribeCycle(graph, CycleAmong(graph, waiting))));
}

std::vector<NodeIndex> FindCycle(const ExecutionGraph& graph) {
  std::vector<uint32_t> waiting;
  OrderWhatCanBe(graph, &waiting);
  return CycleAmong(graph, waiting);
}

std::string DescribeCycle(const ExecutionGraph& graph, absl::Span<const NodeIndex> cycle) {
  std::string text = graph.Describe(cycle[0]);
  absl::string_view separator = " waits for ";
  for (size_t i = 1; i <= cycle.size(); ++i) {
    const bool hidden = i > kNamedAtEachEnd && i + kNamedAtEachEnd <= cycle.size();
    if (hidden) {
      const size_t count = cycle.size() - 2 * kNamedAtEachEnd;
      if (i == kNamedAtEachEnd + 1) absl::StrAppend(&text, separator, count, " more");
    } else {
      absl::StrAppend(&text, separator, graph.Describe(cycle[i % cycle.size()]));
    }
    separator = hidden ? ", of which the last waits for " : ", which waits for ";
  }
  return text;
}

absl::StatusOr<GraphPath> LongestPath(const ExecutionGraph& graph) {
  ASSIGN_OR_RETURN(const std::vector<NodeIndex> order, TopologicalOrder(graph));
  std::vector<int64_t> ends_ns(graph.node_count(), 0);
  std::vector<NodeIndex> before(graph.node_count(), kNoNodeIndex);
  NodeIndex last = kNoNodeIndex;
  for (const NodeIndex node : order) {
    int64_t start_ns = 0;
    for (const NodeIndex source : graph.dependencies(node)) {
      if (before[node] != kNoNodeIndex && ends_ns[source] <= start_ns) continue;
      before[node] = source;
      start_ns = ends_ns[source];
    }
    const int64_t duration_ns = graph.duration_ns(node);
    if (duration_ns > std::numeric_limits<int64_t>::max() - start_ns) {
      return absl::OutOfRangeError(
          absl::StrCat("the durations up to ", graph.Describe(node), " add up to over 292 years"));
    }
    ends_ns[node] = start_ns + duration_ns;
    const bool later = last == kNoNodeIndex || ends_ns[node] > ends_ns[last] ||
                       (ends_ns[node] == ends_ns[last] && node < last);
    if (later) last = node;
  }
  GraphPath path;
  if (last != kNoNodeIndex) path.length_ns = ends_ns[last];
  for (NodeIndex node = last; node != kNoNodeIndex; node = before[node]) path.nodes.push_back(node);
  std::reverse(path.nodes.begin(), path.nodes.end());
  return path;
}

}  // namespace meridian
