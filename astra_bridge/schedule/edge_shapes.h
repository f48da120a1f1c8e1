// Edges that are alike to the network: they differ in nothing but their id and the name of their
// group, so that one stands for all when they are timed.
#ifndef ASTRA_BRIDGE_SCHEDULE_EDGE_SHAPES_H_
#define ASTRA_BRIDGE_SCHEDULE_EDGE_SHAPES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/schedule/workload_edges.h"

namespace meridian {

using ShapeIndex = uint32_t;

struct EdgeShapes {
  // By edge. Numbers ascend as CanonicalOrder sorts within a topology, so that the sorted shapes of
  // a batch are its identity and its order.
  std::vector<ShapeIndex> shape_of;
  // By shape: the first edge that has it.
  std::vector<EdgeIndex> examples;
};

EdgeShapes FindEdgeShapes(absl::Span<const CommEdge> edges);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_EDGE_SHAPES_H_
