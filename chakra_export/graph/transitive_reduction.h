// SPDX-License-Identifier: Apache-2.0
// Removes edges that other edges imply: of a -> b -> c and a -> c the last.
#ifndef CHAKRA_EXPORT_GRAPH_TRANSITIVE_REDUCTION_H_
#define CHAKRA_EXPORT_GRAPH_TRANSITIVE_REDUCTION_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// Returns how many edges were removed; what must come before what stays the same.
//
// Reachability is kept as the farthest ancestor on each of `max_chains` (at least 1) chains: paths
// that together cover the graph. Streams and threads make a dozen chains per rank. All edges that
// are implied go when the graph falls into at most max_chains chains per rank; else edges from
// nodes of further chains stay. Takes time in proportion to edges times chains, memory to the nodes
// that still have successors to come. FailedPrecondition names a cycle.
absl::StatusOr<size_t> RemoveTransitiveEdges(ExecutionGraph* graph, size_t max_chains = 64);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_TRANSITIVE_REDUCTION_H_
