// SPDX-License-Identifier: Apache-2.0
// The dependencies among the nodes of one rank, by position: who waits for whom, and which of the
// ready ones comes first.
#ifndef ASTRA_BRIDGE_ENGINE_DEPENDENCY_GRAPH_H_
#define ASTRA_BRIDGE_ENGINE_DEPENDENCY_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

class DependencyGraph {
 public:
  // Fails on two nodes with one id, and on a dependency that does not exist. Circles show when the
  // nodes are worked off.
  static absl::StatusOr<DependencyGraph> Create(const RankWorkload& rank);

  uint32_t size() const { return static_cast<uint32_t>(dependency_counts_.size()); }

  // Returns how many nodes a node waits for at first; one named twice counts twice.
  uint32_t dependency_count(uint32_t node) const { return dependency_counts_[node]; }

  // Returns the nodes that wait for a node.
  absl::Span<const uint32_t> dependents(uint32_t node) const {
    return absl::MakeConstSpan(dependents_)
        .subspan(dependents_begin_[node], dependents_begin_[node + 1] - dependents_begin_[node]);
  }

  // Returns the node with that id, or size() when there is none. The rank is the one that the graph
  // is of, and has nodes.
  uint32_t Find(const RankWorkload& rank, uint64_t id) const;

  // The priority of a node is its place in the order of ids; priority 0 is the smallest id.
  uint32_t priority(uint32_t node) const { return priorities_[node]; }
  uint32_t node_at(uint32_t priority) const { return order_[priority]; }

 private:
  absl::Status SortById(const RankWorkload& rank);
  absl::Status LinkDependents(const RankWorkload& rank);

  // Nodes by priority.
  std::vector<uint32_t> order_;
  // Priorities by node.
  std::vector<uint32_t> priorities_;
  std::vector<uint32_t> dependency_counts_;
  // Dependents of all nodes, in the order of the nodes; those of node n begin at
  // dependents_begin_[n] and end where those of the next begin.
  std::vector<uint32_t> dependents_;
  std::vector<size_t> dependents_begin_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_DEPENDENCY_GRAPH_H_
