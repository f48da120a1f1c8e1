// A measured graph made ready to be run again with other times.
//
// In a measured graph one edge into each node stands for all the time before it, the last thing
// that had to happen; what else had to happen weighs nothing, since it was over long before. When
// times change, another thing may become the last, and it has a delay of its own that the
// measurement did not show:
//
//   launch call    |--launch delay--|                    hidden: the kernel before ended later
//   stream         |--- kernel before ---| gap |--- kernel ---|
//
// A schedule has these hidden delays filled in, each as far as there was room for it, so that the
// schedule as it stands takes exactly the measured times.
#ifndef CRITICAL_PATH_WHAT_IF_SCHEDULE_H_
#define CRITICAL_PATH_WHAT_IF_SCHEDULE_H_

#include <vector>

#include "critical_path/longest_path.h"
#include "critical_path/path_graph.h"

namespace meridian {

struct Schedule {
  // An edge's weight is the least time between its nodes. The edges of the measured path come
  // first, so that it stays the path for as long as it is one of the longest.
  PathGraph graph;

  // By event; kNoNode for events without both.
  std::vector<NodeId> start_nodes;
  std::vector<NodeId> end_nodes;

  // For each lane its nodes in the order in which they happen. Threads do one thing after the
  // other and streams run in order: edges say so, and edits keep it so. Empty for HTA's graphs,
  // whose lanes have no such edges.
  std::vector<std::vector<NodeId>> lane_order;

  bool keeps_order() const { return !lane_order.empty(); }
  // False for the window's bounds, and for the nodes in which ranks meet.
  bool IsOfEvent(NodeId id) const;
  // True for the start of device work.
  bool IsWorkStart(NodeId id) const;
  LaneId LaneOf(GraphEventId event) const { return graph.events[event].lane; }
  bool IsOnDevice(GraphEventId event) const {
    return graph.lanes[LaneOf(event)].kind == TrackKind::kDevice;
  }
};

// Makes the schedule of a graph built from a trace (trace_graph.h) and its path. A hidden delay is
//
// - into the start of device work: the median of the delays of its type (launch, kernel-kernel,
//   sync) that show on the same stream, else in the whole graph, else none;
// - into any other node: the delay that shows there. A call returns after what it waits for, and a
//   collective transfers after its last member came, whichever that is;
// - into the window's end: none;
//
// but never more than the measured time between the nodes.
Schedule BuildSchedule(const PathGraph& measured, const CriticalPath& path);

// Makes the schedule of HTA's graph, whose edges weigh what they weigh: HTA's own what-if.
Schedule BuildHtaSchedule(const PathGraph& measured, const CriticalPath& path);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_SCHEDULE_H_
