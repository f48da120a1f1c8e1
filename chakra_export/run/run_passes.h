// SPDX-License-Identifier: Apache-2.0
// What makes the graph of a run one that can be run again, pass by pass.
#ifndef CHAKRA_EXPORT_RUN_RUN_PASSES_H_
#define CHAKRA_EXPORT_RUN_RUN_PASSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/run_graph.h"

namespace meridian {

// One order for all ranks. A simulator gives each rank one slot for communication: two ranks that
// take two collectives in different orders wait for each other for ever, even when nothing in the
// program orders them. So all ranks run their collectives in the order found here.
//
//   rank 0   [all-reduce a]--(control)-->[all-gather b]
//   rank 1   [all-reduce a]--(control)-->[all-gather b]      although b could have begun first
//
// A send occupies its rank, too, but always ends, and a receive occupies nothing: only collectives
// can wait for each other in a circle.
//
// Returns all nodes, each after what it waits for, where collectives of one execution count as one
// node and a receive waits for its send; of nodes that may both come next the one that was measured
// first goes first. FailedPrecondition names an execution that waits for itself: ranks which run
// collectives in different orders.
//
// The graph of one rank with an outline of the others gives the order that its nodes have among those
// of all ranks. FailedPrecondition when it cannot tell that: communication came earlier, by its time,
// than what it waited for.
absl::StatusOr<std::vector<NodeIndex>> GlobalOrder(const RunGraph& graph);

// Lets every collective wait for the one before it on its rank.
void AddCommunicationOrder(const std::vector<NodeIndex>& order, RunGraph* graph);

// Makes a run without its hosts, for simulators of devices, which have none. What the hosts passed on
// stays: work that was launched after its thread had waited for other work waits for that.
//
//   thread    [launch a] . . waits for a . . [launch b]
//   stream 7        [a]------------------+
//   stream 16                            +--sync--> [b]
//
// A thread knows what it waited for, and what a thread that it waited for knew.
//
// `order` is a GlobalOrder of the graph. Returns it without the host's nodes; their edges are gone,
// the nodes themselves stay in the graph.
std::vector<NodeIndex> FoldHosts(const std::vector<NodeIndex>& order, RunGraph* graph);

// Makes time in which a device had nothing to do because its host was not ready nodes of the device:
//
//   measured    [kernel a]          [kernel b]
//   graph       [kernel a]-[ gap   ]-[kernel b]
//                               launch
//
// docs/run_graph.md#gaps says where they are. Gaps shorter than a microsecond are carried along until
// they make one, so that a replay never drifts from what was measured.
//
// The run begins with the earliest start of all ranks, if these have one clock; a rank that starts
// later has a gap before what it begins with. A rank whose first node communicates has a gap before
// it in any case, if only an empty one: some simulators cannot send at time 0.
//
// `order` is a GlobalOrder of the graph with all its edges. Returns the order with the gaps in it,
// each right before its node.
std::vector<NodeIndex> AddHostGaps(const std::vector<NodeIndex>& order, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_RUN_PASSES_H_
