// Edges as something a simulator can run: every participant starts its part of every edge at once.
#ifndef ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_
#define ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/workload.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

struct EdgeWorkload {
  Workload workload;
  // The most edges that a rank takes part in.
  int32_t comm_streams = 1;
};

struct EdgeWorkloadOptions {
  // Begin with a compute node of 1 ns on every rank, so that no communication starts at time 0 and
  // none is without a node: AstraSim can do neither. All times are then 1 ns later.
  bool start_nodes = false;
};

// Returns the id of the nodes of the edge at that position, the same on all its ranks. Ids ascend
// with the edges, so that simulators which run one communication at a time cannot deadlock.
uint64_t EdgeNodeId(size_t position);

// Makes the workload from edges that use the network, with devices the fabric has. InvalidArgument,
// naming the edge, when the fabric has no algorithm for it.
absl::StatusOr<EdgeWorkload> MakeEdgeWorkload(absl::Span<const CommEdge> edges,
                                              const Fabric& fabric,
                                              const EdgeWorkloadOptions& options = {});

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_EDGE_WORKLOAD_H_
