// SPDX-License-Identifier: Apache-2.0
// Comm edges as a workload that a simulator can run: every participant starts its part of every
// edge when it is told to.
#ifndef ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_
#define ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// Returns whether every device of the network takes part.
bool IsWorld(const CommEdge& edge, const Fabric& fabric);

// Returns the algorithms that carry out a collective on a fabric, one per dimension that takes
// part:
//
//   hint           one dimension, or a part of the ranks   all ranks, several dimensions
//   none           as the system configuration says        as the system configuration says
//   ring           ring                                    oneRing: one ring through all
//   direct         direct                                  oneDirect
//   tree           doubleBinaryTree                        refused
//   hierarchical   refused                                 as the system configuration says
//
// An edge that the fabric cannot carry out as hinted, or that the system configuration has no
// algorithm for, is InvalidArgument and names the edge.
absl::StatusOr<std::vector<CollectiveAlgorithm>> EdgeAlgorithms(const CommEdge& edge,
                                                                const Fabric& fabric);

struct EdgeWorkload {
  Workload workload;
  // The most edges that any one rank takes part in, up to 65,536 / NPUs, or 64 where that is more: so
  // many are to run at once, later ones after these.
  int32_t comm_streams = 1;
};

// Returns the id of the nodes of the edge at that position, the same on all its ranks.
uint64_t EdgeNodeId(size_t position);

// When edges of a job begin, and until when they keep their participants.
struct EdgeSchedule {
  // By edge and participant.
  std::vector<std::vector<int64_t>> begins_ns;
  // By edge; empty when no edge waits for another.
  std::vector<int64_t> ends_ns;
};

// Makes the workload in which participants start their parts as in a schedule: as long after the end
// of the edge that was the last to end before, on the same rank, as there. So a rank whose edges last
// longer than in the schedule comes to later ones later. Every part begins after the overhead. Edges
// use the network, with devices the fabric has. InvalidArgument, naming the edge, when the fabric has
// no algorithm for it.
absl::StatusOr<EdgeWorkload> MakeEdgeWorkload(absl::Span<const CommEdge> edges,
                                              const Fabric& fabric, const EdgeSchedule& schedule,
                                              int64_t overhead_ns = 0);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_
