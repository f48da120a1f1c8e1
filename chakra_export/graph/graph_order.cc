#include "chakra_export/graph/graph_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/topological_order.h"

namespace meridian {
namespace {

// A description names so many nodes at either end.
constexpr size_t kNamedAtEachEnd = 4;

// Returns an order of as many nodes as have one; `waiting` is left with how many dependencies of
// each node are not in it.
std::vector<NodeIndex> OrderWhatCanBe(const ExecutionGraph& graph, std::vector<uint32_t>* waiting) {
  const SuccessorIndex successors(graph);
  std::vector<NodeIndex> nodes(graph.node_count());
  std::iota(nodes.begin(), nodes.end(), 0);
  waiting->resize(nodes.size());
  for (const NodeIndex node : nodes) {
    (*waiting)[node] = static_cast<uint32_t>(graph.dependencies(node).size());
  }
  return TopologicalOrder(std::move(nodes), waiting, [&](NodeIndex node, const auto& visit) {
    for (const NodeIndex next : successors.Of(node)) visit(next);
  });
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

}  // namespace meridian
