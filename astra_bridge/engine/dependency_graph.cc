#include "astra_bridge/engine/dependency_graph.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  const auto by_id = [&](const WorkloadNode& a, const WorkloadNode& b) { return a.id < b.id; };
  is_sorted_ = std::is_sorted(nodes.begin(), nodes.end(), by_id);
  if (!is_sorted_) {
    order_.resize(nodes.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(),
              [&](uint32_t a, uint32_t b) { return nodes[a].id < nodes[b].id; });
    priorities_.resize(nodes.size());
    for (uint32_t priority = 0; priority < size(); ++priority) {
      priorities_[order_[priority]] = priority;
    }
  }
  for (uint32_t priority = 1; priority < size(); ++priority) {
    const uint64_t id = nodes[node_at(priority)].id;
    if (nodes[node_at(priority - 1)].id == id) {
      return absl::InvalidArgumentError(absl::StrCat("node ", id, ": the id is there twice"));
    }
  }
  return absl::OkStatus();
}

uint32_t DependencyGraph::FindNode(const RankWorkload& rank, uint64_t id) const {
  const absl::Span<const WorkloadNode> nodes = rank.nodes();
  // Ids are often consecutive.
  const uint64_t guess = id - nodes[node_at(0)].id;
  if (guess < size() && nodes[node_at(static_cast<uint32_t>(guess))].id == id) {
    return node_at(static_cast<uint32_t>(guess));
  }
  uint32_t low = 0;
  uint32_t high = size();
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (nodes[node_at(middle)].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < size() && nodes[node_at(low)].id == id ? node_at(low) : size();
}

absl::Status DependencyGraph::LinkDependents(const RankWorkload& rank) {
  // Counted first, one place further on, so that the sums are where each node's list begins.
  dependents_begin_.resize(size() + size_t{1});
  std::vector<uint32_t> dependencies;
  for (uint32_t node = 0; node < size(); ++node) {
    for (const uint64_t id : rank.dependencies(node)) {
      const uint32_t dependency = FindNode(rank, id);
      if (dependency == size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node ", rank.nodes()[node].id, " depends on node ", id, ", which does not exist"));
      }
      dependencies.push_back(dependency);
      ++dependents_begin_[dependency + size_t{1}];
      ++dependency_counts_[node];
    }
  }
  std::partial_sum(dependents_begin_.begin(), dependents_begin_.end(), dependents_begin_.begin());
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

std::vector<uint32_t> DependencyGraph::FindCircle(const RankWorkload& rank,
                                                  absl::Span<const uint32_t> dependencies_left) {
  absl::flat_hash_map<uint64_t, uint32_t> waiting;
  for (uint32_t node = 0; node < dependencies_left.size(); ++node) {
    if (dependencies_left[node] > 0) waiting[rank.nodes()[node].id] = node;
  }
  // From any node that waits, along dependencies that wait themselves, until one repeats.
  uint32_t node = 0;
  while (dependencies_left[node] == 0) ++node;
  std::vector<uint32_t> path;
  std::vector<bool> is_seen(dependencies_left.size());
  while (!is_seen[node]) {
    is_seen[node] = true;
    path.push_back(node);
    const absl::Span<const uint64_t> dependencies = rank.dependencies(node);
    const auto next = std::find_if(dependencies.begin(), dependencies.end(),
                                   [&](uint64_t id) { return waiting.contains(id); });
    node = waiting.at(*next);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), node));
  return path;
}

}  // namespace meridian
