// SPDX-License-Identifier: Apache-2.0
// Orders in which every node comes after what it waits for, why there may be none, and which edges such
// orders do not need.
#ifndef CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
#define CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// Returns all nodes in such an order; of two that may both come next, the one with the smaller
// index comes earlier in its generation. FailedPrecondition names a cycle. Linear time.
absl::StatusOr<std::vector<NodeIndex>> TopologicalOrder(const ExecutionGraph& graph);

// Returns nodes of which each waits for the next and the last for the first; empty when the graph
// has no cycle.
std::vector<NodeIndex> FindCycle(const ExecutionGraph& graph);

// Returns "rank 0 node 3 (a) waits for rank 0 node 5 (b), which waits for rank 0 node 3 (a)". A
// long cycle is shortened in the middle.
std::string DescribeCycle(const ExecutionGraph& graph, absl::Span<const NodeIndex> cycle);

// Removes edges that other edges imply: of a -> b -> c and a -> c the last. Returns how many edges
// were removed; what must come before what stays the same.
//
// Reachability is kept as the farthest ancestor on each of `max_chains` (at least 1) chains: paths
// that together cover the graph. Streams and threads make a dozen chains per rank. All edges that
// are implied go when the graph falls into at most max_chains chains per rank; else edges from
// nodes of further chains stay. Takes time in proportion to edges times chains, memory to the nodes
// that still have successors to come. FailedPrecondition names a cycle.
absl::StatusOr<size_t> RemoveTransitiveEdges(ExecutionGraph* graph, size_t max_chains = 64);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
