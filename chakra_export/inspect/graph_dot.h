// SPDX-License-Identifier: Apache-2.0
// A graph, or the surroundings of one of its nodes, in the language of Graphviz.
#ifndef CHAKRA_EXPORT_INSPECT_GRAPH_DOT_H_
#define CHAKRA_EXPORT_INSPECT_GRAPH_DOT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

std::vector<NodeIndex> AllNodes(const ExecutionGraph& graph);

// Returns the nodes nearest to the centre in ascending order, max_nodes at most (and at least 1):
// what it waits for, what waits for it, and its peers in communication are at distance 1, and so
// on.
std::vector<NodeIndex> Neighbourhood(const ExecutionGraph& graph, const CommunicationMatch& match,
                                     NodeIndex center, size_t max_nodes);

// Returns the nodes and the edges between them, ranks in boxes. Nodes that have neighbours
// elsewhere have a dashed border; messages and collectives are joined by dotted lines.
std::string GraphDot(const ExecutionGraph& graph, const CommunicationMatch& match,
                     const std::vector<NodeIndex>& nodes);

// Finds the node that a text names: "17" on the lowest rank that has such an id, "3:17" on rank 3.
absl::StatusOr<NodeIndex> FindGraphNode(const ExecutionGraph& graph, absl::string_view text);

// Returns the node that takes longest, the first of several. There must be nodes.
NodeIndex LongestNode(const ExecutionGraph& graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_GRAPH_DOT_H_
