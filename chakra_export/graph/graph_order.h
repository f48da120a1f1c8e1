// SPDX-License-Identifier: Apache-2.0
// Orders in which every node comes after what it waits for, and why there may be none.
#ifndef CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
#define CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_

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

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
