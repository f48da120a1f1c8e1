// The longest path of a graph: the chain of events that nothing else could have hidden.
#ifndef CRITICAL_PATH_LONGEST_PATH_H_
#define CRITICAL_PATH_LONGEST_PATH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/path_graph.h"

namespace meridian {

struct CriticalPath {
  // From the first to the last; each begins where the one before ends. Never empty.
  std::vector<EdgeId> edges;
  // The sum of their weights.
  int64_t length_ps = 0;
};

// Returns the nodes of the path in order, one more than it has edges.
std::vector<NodeId> PathNodes(const PathGraph& graph, const CriticalPath& path);

// Finds the longest path that ends in graph.end_node, or anywhere if there is none. In time linear
// in nodes and edges.
//
// Of equally long paths one is chosen by the order of the edges alone. Nodes count in the order in
// which edges first name them; they are sorted topologically, generation by generation, each in the
// order in which the generation before completes its members. A node's predecessor is its first
// incoming edge of those with the greatest sum; the path's end is the first node, in topological
// order, of those with the greatest sum. (This is what networkx.dag_longest_path does, so that
// equal graphs have equal paths.)
//
// A graph with a cycle is InvalidArgument, naming an event in it; one without edges is
// FailedPrecondition; a sum that no int64 holds is OutOfRange.
absl::StatusOr<CriticalPath> FindLongestPath(const PathGraph& graph);

}  // namespace meridian

#endif  // CRITICAL_PATH_LONGEST_PATH_H_
