// SPDX-License-Identifier: Apache-2.0
// What the ranks of a predicted iteration do with its time, beside the measured one.
#ifndef ASTRA_BRIDGE_PREDICTION_ITERATION_TIMES_H_
#define ASTRA_BRIDGE_PREDICTION_ITERATION_TIMES_H_

#include <functional>

#include "absl/status/statusor.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/iteration_prediction.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

class SimulatedTimes;  // simulated_times.proto

// `log_factor` says of an edge how far its time may be off, as a logarithm; null: not known. The
// prediction is of the graph, with these resources.
absl::StatusOr<SimulatedTimes> TimeIteration(
    const IterationPrediction& prediction, const ExecutionGraph& graph,
    const CommunicationMatch& match, ReplayResources resources,
    const std::function<double(const CommEdge&)>& log_factor);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_ITERATION_TIMES_H_
