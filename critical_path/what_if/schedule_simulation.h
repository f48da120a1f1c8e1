// Runs a schedule again: everything happens as soon as all that it waits for has happened, plus
// the edge's time.
//
// Each node of the graph becomes a node of an ExecutionGraph on the resource that is its lane,
// taking the time of the edges into it; where these differ, each one that takes longer than the
// least gets a node of its own before it. Lanes do one thing after the other because their edges
// say so (Schedule::lane_order), so that chakra_export/graph's replay needs no other order.
#ifndef CRITICAL_PATH_WHAT_IF_SCHEDULE_SIMULATION_H_
#define CRITICAL_PATH_WHAT_IF_SCHEDULE_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/path_graph.h"
#include "critical_path/what_if/schedule.h"

namespace meridian {

// Returns when each node happens, from 0. FailedPrecondition when nodes wait for each other in a
// circle, naming them; OutOfRange when there are too many nodes, or the time does not fit.
absl::StatusOr<std::vector<int64_t>> SimulateSchedule(const PathGraph& graph);

// Puts simulated times into the nodes, the events and the window's end of a schedule of ours.
void PutTimes(const std::vector<int64_t>& times_ps, Schedule* schedule);

}  // namespace meridian

#endif  // CRITICAL_PATH_WHAT_IF_SCHEDULE_SIMULATION_H_
