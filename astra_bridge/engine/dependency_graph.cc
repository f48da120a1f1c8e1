#include "astra_bridge/engine/dependency_graph.h"

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

absl::StatusOr<DependencyGraph> DependencyGraph::Create(const RankWorkload& rank) {
  DependencyGraph graph;
  graph.dependency_counts_.resize(rank.nodes().size());
  RETURN_IF_ERROR(graph.SortById(rank));
  RETURN_IF_ERROR(graph.LinkDependents(rank));
  return graph;
}

absl::Status DependencyGraph::SortById(const RankWorkload& rank) {
  const absl::Span<const WorkloadNode> nodes = rank.nodes();
  const auto by_id = [&](uint32_t a, uint32_t b) { return nodes[a].id < nodes[b].id; };
  order_.resize(size());
  absl::c_iota(order_, 0);
  // Nodes usually come in the order of their ids.
  if (!absl::c_is_sorted(order_, by_id)) absl::c_sort(order_, by_id);
  priorities_.resize(size());
  for (uint32_t priority = 0; priority < size(); ++priority) {
    priorities_[order_[priority]] = priority;
    const uint64_t id = nodes[order_[priority]].id;
    if (priority > 0 && nodes[order_[priority - 1]].id == id) {
      return InvalidArgument("node ", id, ": the id is there twice");
    }
  }
  return absl::OkStatus();
}

uint32_t DependencyGraph::Find(const RankWorkload& rank, uint64_t id) const {
  const absl::Span<const WorkloadNode> nodes = rank.nodes();
  // Ids are often consecutive.
  const uint64_t guess = id - nodes[order_[0]].id;
  if (guess < size() && nodes[order_[guess]].id == id) return order_[guess];
  const auto found = absl::c_lower_bound(
      order_, id, [&](uint32_t node, uint64_t wanted) { return nodes[node].id < wanted; });
  return found != order_.end() && nodes[*found].id == id ? *found : size();
}

absl::Status DependencyGraph::LinkDependents(const RankWorkload& rank) {
  // Counted first, one place further on, so that the sums are where each node's list begins.
  dependents_begin_.resize(size() + size_t{1});
  std::vector<uint32_t> dependencies;
  for (uint32_t node = 0; node < size(); ++node) {
    for (const uint64_t id : rank.dependencies(node)) {
      const uint32_t dependency = Find(rank, id);
      if (dependency == size()) {
        return InvalidArgument("node ", rank.nodes()[node].id, " depends on node ", id,
                               ", which does not exist");
      }
      dependencies.push_back(dependency);
      ++dependents_begin_[dependency + size_t{1}];
      ++dependency_counts_[node];
    }
  }
  absl::c_partial_sum(dependents_begin_, dependents_begin_.begin());
  dependents_.resize(dependencies.size());
  std::vector<size_t> next(dependents_begin_.begin(), dependents_begin_.end() - 1);
  size_t edge = 0;
  for (uint32_t node = 0; node < size(); ++node) {
    for (uint32_t i = 0; i < dependency_counts_[node]; ++i) {
      dependents_[next[dependencies[edge++]]++] = node;
    }
  }
  return absl::OkStatus();
}

}  // namespace meridian
