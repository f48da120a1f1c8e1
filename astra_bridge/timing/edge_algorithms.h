// Which algorithm carries out an edge on a fabric.
//
//   hint           one dimension, or a part of the ranks   all ranks, several dimensions
//   none           as the system configuration says        as the system configuration says
//   ring           ring                                    oneRing: one ring through all
//   direct         direct                                  oneDirect
//   tree           doubleBinaryTree                        refused
//   hierarchical   refused                                 as the system configuration says
#ifndef ASTRA_BRIDGE_TIMING_EDGE_ALGORITHMS_H_
#define ASTRA_BRIDGE_TIMING_EDGE_ALGORITHMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/timing/fabric.h"

namespace meridian {

// True when every device of the network takes part.
bool IsWorld(const CommEdge& edge, const Fabric& fabric);

// Returns one entry per dimension that takes part. An edge that the fabric cannot carry out as
// hinted, or that the system configuration has no algorithm for, is InvalidArgument and names the
// edge.
absl::StatusOr<std::vector<CollectiveAlgorithm>> EdgeAlgorithms(const CommEdge& edge,
                                                                const Fabric& fabric);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_EDGE_ALGORITHMS_H_
