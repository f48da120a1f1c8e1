// SPDX-License-Identifier: Apache-2.0
// All transfers of a job together on its networks: how long each lasts when its members begin as in a
// schedule. A member that comes early to a collective already sends what it has, and shares links with
// what others do meanwhile.
//
// Transfers last what was measured, or what a calibration says, when their work on the network is
// scaled; then another network, or another schedule, says what becomes of them there.
#ifndef ASTRA_BRIDGE_PREDICTION_SHARED_TRANSFERS_H_
#define ASTRA_BRIDGE_PREDICTION_SHARED_TRANSFERS_H_

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/link_paths.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/edge_workload.h"
#include "astra_bridge/timing/fabric.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

// How a transfer's work on the network differs from what its bytes say.
struct EdgeScale {
  // The bytes that it moves are multiplied by this.
  double bytes = 1;
  // What bytes cannot make up for, such as less latency than the network has: the time that it lasts
  // is multiplied by this.
  double time = 1;
};

class SharedTransfers {
 public:
  // Edges and fabrics must outlive this object; edges are on devices, and do not meet those on other
  // fabrics. Every transfer takes the overhead before it moves anything.
  SharedTransfers(absl::Span<const CommEdge> edges, const FabricSet& fabrics, Congestion congestion,
                  double overhead_ns = 0)
      : edges_(edges), fabrics_(fabrics), congestion_(congestion), overhead_ns_(overhead_ns) {}

  // Returns a schedule that leaves each edge alone on the network if it lasts no longer than a hundred
  // times what is given.
  EdgeSchedule Apart(absl::Span<const double> lasts_ns) const;

  // Returns how long each edge lasts from when its last participant begins. Errors are those of
  // Simulate.
  absl::StatusOr<std::vector<double>> LastsNs(const EdgeSchedule& schedule,
                                              absl::Span<const EdgeScale> scales) const;

  // Returns scales with which the edges last so long in that schedule.
  absl::StatusOr<std::vector<EdgeScale>> FitScales(const EdgeSchedule& schedule,
                                                   absl::Span<const double> lasts_ns) const;

 private:
  // Sets how long the edges of these numbers last, all of which are on the fabric.
  absl::Status SimulateOn(const Fabric& fabric, absl::Span<const size_t> numbers,
                          const EdgeSchedule& schedule, absl::Span<const EdgeScale> scales,
                          std::vector<double>* lasts_ns) const;

  const absl::Span<const CommEdge> edges_;
  const FabricSet& fabrics_;
  const Congestion congestion_;
  const double overhead_ns_;
  // Ways through fabrics of links, found once.
  mutable std::map<const Fabric*, LinkPaths> paths_;
};

// Replays a graph with its communication on a simulated network, both at once: the network says how
// long transfers last, the replay when their members begin.
//
//   replay --> when each member of each transfer begins --> all transfers together on the network
//     ^                                                                      |
//     +--------- how long each lasts after its last member has begun --------+
//
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

#endif  // ASTRA_BRIDGE_PREDICTION_SHARED_TRANSFERS_H_
