// SPDX-License-Identifier: Apache-2.0
// A graph for viewers: all of it or the surroundings of one of its nodes in the language of
// Graphviz, and when its nodes ran as a Chrome trace.
#ifndef CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_
#define CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Returns the nodes nearest to the centre in ascending order, max_nodes at most (and at least 1):
// what it waits for, what waits for it, and its peers in communication are at distance 1, and so
// on.
std::vector<NodeIndex> Neighbourhood(const ExecutionGraph& graph, const CommunicationMatch& match,
                                     NodeIndex center, size_t max_nodes);

// Returns the nodes and the edges between them for Graphviz, ranks in boxes. Nodes that have
// neighbours elsewhere have a dashed border; messages and collectives are joined by dotted lines.
std::string GraphDot(const ExecutionGraph& graph, const CommunicationMatch& match,
                     const std::vector<NodeIndex>& nodes);

// Finds the node that a text names: "17" on the lowest rank that has such an id, "3:17" on rank 3.
absl::StatusOr<NodeIndex> FindGraphNode(const ExecutionGraph& graph, absl::string_view text);

// Returns the node that takes longest, the first of several. There must be nodes.
NodeIndex LongestNode(const ExecutionGraph& graph);

struct GraphPicture {
  // The nodes for Graphviz.
  std::string dot;
  // How many nodes it shows, and the one in the middle; kNoNodeIndex for a graph without nodes.
  size_t shown = 0;
  NodeIndex center = kNoNodeIndex;
};

// Draws the neighbourhood of the node that `center` names, or without a name all nodes, if they are
// no more than max_nodes, else the neighbourhood of the longest. Errors say --center.
absl::StatusOr<GraphPicture> DrawGraph(const ExecutionGraph& graph, absl::string_view center,
                                       size_t max_nodes);

// When nodes ran, in nanoseconds.
struct NodeTimes {
  // True for Unix times as the trace has them, false for times from the begin of a replay.
  bool measured = false;
  // By node; kNoTimeNs for a measured node that took no time and has no start.
  std::vector<int64_t> starts_ns;
  std::vector<int64_t> ends_ns;
};

// Returns nullopt unless every node that took time says when it started, and at least one does.
std::optional<NodeTimes> MeasuredTimes(const ExecutionGraph& graph);

// Returns the measured times, or else those of a replay as ASTRA-sim would run the graph; the error
// is that of the replay.
absl::StatusOr<NodeTimes> MeasuredOrReplayedTimes(const ExecutionGraph& graph);

// Writes a Chrome trace: a process per rank, a thread per stream and host thread. Times in the
// trace count from the earliest start. Receives have threads of their own, since they overlap with
// what their stream does. OutOfRange for times over 106 days apart.
absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_
