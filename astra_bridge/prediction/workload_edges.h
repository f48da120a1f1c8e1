// SPDX-License-Identifier: Apache-2.0
// The communication of a workload as comm edges that a NetworkTiming can price: one for each
// collective of a group and for each message, under a name that does not change from run to run.
//
//   world#3              the fourth collective of all ranks
//   group 7#0            the first collective of the group that the traces call 7
//   send 0>4 tag 2#1     the second message from rank 0 to rank 4 with tag 2
#ifndef ASTRA_BRIDGE_PREDICTION_WORKLOAD_EDGES_H_
#define ASTRA_BRIDGE_PREDICTION_WORKLOAD_EDGES_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

// Position of a comm edge in WorkloadEdges::edges.
using CommEdgeIndex = uint32_t;
inline constexpr CommEdgeIndex kNoCommEdge = std::numeric_limits<CommEdgeIndex>::max();

struct WorkloadEdges {
  // Comm edges in the order of the match's instances.
  std::vector<CommEdge> edges;
  // One graph node of each edge, which gives the edge its name; indexed by edge.
  std::vector<NodeIndex> nodes;
  // The edge of each instance of the match. kNoCommEdge for those that no NetworkTiming prices: they
  // last what the trace says.
  std::vector<CommEdgeIndex> edge_of_instance;
  // How many instances no NetworkTiming prices, by type, e.g. BROADCAST.
  std::map<std::string, int64_t> not_priced;
};

// InvalidArgument, naming nodes and what to do: no communication at all, nodes that find no
// counterpart or disagree with it, ranks of groups and peers of messages that have no trace.
absl::StatusOr<WorkloadEdges> FindWorkloadEdges(const ExecutionGraph& graph,
                                                const CommunicationMatch& match);

// When each comm edge of a workload runs, given how long it takes: an edge is under way from when
// its last member was issued to its end.
//
//   rank 0   [ compute ][ wait ][ all-reduce ][ compute ]
//   rank 1   [ compute         ][ all-reduce ]
//                               |<---lasts-->|
struct EdgeTimes {
  // When each edge begins, and how long it lasts, by edge.
  std::vector<int64_t> starts_ns;
  std::vector<int64_t> lasts_ns;
  // When each node of the graph runs.
  GraphReplay replay;
};

// Replays the workload with edges that last edge_ns[edge], all members alike. A send waits for
// its receiver, as NCCL's do, unless the ranks would wait for each other for ever then.
// FailedPrecondition when nodes wait for each other for ever, naming them: by their dependencies, or
// in communication.
absl::StatusOr<EdgeTimes> ReplayEdges(const ExecutionGraph& graph, const CommunicationMatch& match,
                                      const WorkloadEdges& edges, absl::Span<const int64_t> edge_ns,
                                      ReplayResources resources);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_WORKLOAD_EDGES_H_
