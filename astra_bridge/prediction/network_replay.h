// SPDX-License-Identifier: Apache-2.0
// Replays a graph with its communication on a simulated network, both at once: the network says how
// long transfers last, the replay when their members begin.
//
//   replay --> when each member of each transfer begins --> all transfers together on the network
//     ^                                                                      |
//     +--------- how long each lasts after its last member has begun --------+
//
// until the whole lasts as long as before.
#ifndef ASTRA_BRIDGE_PREDICTION_NETWORK_REPLAY_H_
#define ASTRA_BRIDGE_PREDICTION_NETWORK_REPLAY_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

// The search for a schedule ends when its length changes by a smaller share than this, or after so
// many replays.
inline constexpr double kSettledChange = 0.001;
inline constexpr int kMaxNetworkReplays = 10;

// Returns when edges and nodes run; `transfers` are those of the edges. The schedule `begin` is where
// the search begins. Messages wait for their receiver.
absl::StatusOr<EdgeTimes> ReplayOnNetwork(const ExecutionGraph& graph,
                                          const CommunicationMatch& match,
                                          const WorkloadEdges& edges,
                                          const SharedTransfers& transfers,
                                          absl::Span<const EdgeScale> scales,
                                          ReplayResources resources, GraphReplay begin);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_NETWORK_REPLAY_H_
