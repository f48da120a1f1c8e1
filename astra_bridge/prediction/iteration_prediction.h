// SPDX-License-Identifier: Apache-2.0
// How long a workload takes on a network: replayed with every edge as long as alone, or with all
// transfers together on the network (shared_transfers.h). docs/astra_predict.md has the method and its
// limits.
#ifndef ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_
#define ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/prediction/shared_transfers.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

class SimulatedTimes;  // simulated_times.proto

struct IterationOptions {
  TimingMode mode = TimingMode::kIsolated;
  ReplayResources resources = ReplayResources::kPerResource;
  // Told how many edges have been timed alone. May be null.
  std::function<void(uint64_t timed)> progress;
};

struct IterationPrediction {
  // The edges of the workload.
  WorkloadEdges edges;
  // What each edge takes alone, by edge.
  std::vector<double> isolated_seconds;
  // How long each edge takes, in seconds, by edge.
  std::vector<double> seconds;
  // When edges and nodes run with these seconds.
  EdgeTimes times;
  // When all is done if every edge takes as long as alone; in isolated mode that of `times`.
  int64_t isolated_makespan_ns = 0;
};

// Errors are those of FindWorkloadEdges, ReplayEdges, the timing and ReplayOnNetwork.
absl::StatusOr<IterationPrediction> PredictIteration(const TimingSetup& setup,
                                                     const ExecutionGraph& graph,
                                                     const CommunicationMatch& match,
                                                     const IterationOptions& options);

// Returns what the ranks of a predicted iteration do with its time, beside the measured one.
// `log_factor` says of an edge how far its time may be off, as a logarithm; null: not known. The
// prediction is of the graph, with these resources.
absl::StatusOr<SimulatedTimes> TimeIteration(
    const IterationPrediction& prediction, const ExecutionGraph& graph,
    const CommunicationMatch& match, ReplayResources resources,
    const std::function<double(const CommEdge&)>& log_factor);

// Edges together on the networks of a setup.
struct ScaledTransfers {
  SharedTransfers transfers;
  // With these each edge lasts what is corrected when it is alone; 1 without corrections.
  std::vector<EdgeScale> scales;
};

// The setup and the edges must outlive the result.
absl::StatusOr<ScaledTransfers> ShareNetworks(const TimingSetup& setup,
                                              absl::Span<const CommEdge> edges,
                                              absl::Span<const double> isolated_seconds);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_
