// SPDX-License-Identifier: Apache-2.0
// One order for all ranks. A simulator gives each rank one slot for communication: two ranks that
// take two collectives in different orders wait for each other for ever, even when nothing in the
// program orders them. So all ranks run their collectives in the order found here.
//
//   rank 0   [all-reduce a]--(control)-->[all-gather b]
//   rank 1   [all-reduce a]--(control)-->[all-gather b]      although b could have begun first
//
// A send occupies its rank, too, but always ends, and a receive occupies nothing: only collectives
// can wait for each other in a circle.
#ifndef CHAKRA_EXPORT_RUN_COMMUNICATION_ORDER_H_
#define CHAKRA_EXPORT_RUN_COMMUNICATION_ORDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/run/run_graph.h"

namespace meridian {

// Returns all nodes, each after what it waits for, where collectives of one execution count as one
// node and a receive waits for its send; of nodes that may both come next the one that was measured
// first goes first. FailedPrecondition names an execution that waits for itself: ranks which run
// collectives in different orders.
absl::StatusOr<std::vector<NodeIndex>> GlobalOrder(const RunGraph& graph);

// Lets every collective wait for the one before it on its rank.
void AddCommunicationOrder(const std::vector<NodeIndex>& order, RunGraph* graph);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_RUN_COMMUNICATION_ORDER_H_
