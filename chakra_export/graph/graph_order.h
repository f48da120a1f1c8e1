// SPDX-License-Identifier: Apache-2.0
// Orders in which every node comes after what it waits for, and why there may be none.
#ifndef CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
#define CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_

#include <cstdint>
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

// A way through the graph.
struct GraphPath {
  // Sum of the nodes' durations.
  int64_t length_ns = 0;
  // In the order of execution.
  std::vector<NodeIndex> nodes;
};

// Returns the path that takes longest: how long the run lasts at least, however many resources it
// has. Edges only: ranks that wait for each other in communication are ReplayGraph's matter. Of
// equally long ones the path whose nodes have the smallest indices, seen from its end. Errors as
// TopologicalOrder; OutOfRange when the sum does not fit.
absl::StatusOr<GraphPath> LongestPath(const ExecutionGraph& graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_GRAPH_ORDER_H_
