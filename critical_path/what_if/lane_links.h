// What edits of a schedule's structure have in common: keeping its edges and lanes in step.
#ifndef CRITICAL_PATH_WHAT_IF_LANE_LINKS_H_
#define CRITICAL_PATH_WHAT_IF_LANE_LINKS_H_

#include <vector>

#include "critical_path/path_graph.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

// True when the edge joins two events' nodes of one lane, of different events on a device.
bool IsLaneEdge(const Schedule& schedule, const GraphEdge& edge);

// Gives a lane another order of its nodes, or of a part of them, and joins those that now follow
// each other. The time before a node, a gap or its parent's, stays with the node; only the first
// and what takes its place exchange theirs, so that a thread begins when it began. Calls of the
// host that waited for work of a stream wait for the same work as before.
void ReorderLane(LaneId lane, std::vector<NodeId> order, Schedule* schedule);

// Of edges that join the same nodes keeps the longest; leads each lane's last node to the window's
// end. To be called after a change of structure.
void TidyEdges(Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_LANE_LINKS_H_
