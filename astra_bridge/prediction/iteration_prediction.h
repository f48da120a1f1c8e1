// SPDX-License-Identifier: Apache-2.0
// How long a workload takes on a network, with what runs at once slowing each other down:
//
//   replay with isolated times -> traffic intervals -> batch times -> folded edge times -> replay
//                                        ^                                                  |
//                                        +------ once more, when more than 5 % of the ------+
//                                                edges run beside others than before
//
// docs/astra_predict.md has the formulas and their limits.
#ifndef ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_
#define ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/prediction/traffic_interval_timer.h"
#include "astra_bridge/prediction/traffic_intervals.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

struct IterationOptions {
  TimingMode mode = TimingMode::kIsolated;
  ReplayResources resources = ReplayResources::kPerResource;
  int threads = 1;
  // Told how many edges, and sets of edges that run at once, have been timed. May be null.
  std::function<void(uint64_t timed)> progress;
};

struct IterationPrediction {
  // The edges of the workload, on devices.
  WorkloadEdges edges;
  // How long each edge takes, in seconds, by edge.
  std::vector<double> seconds;
  // When edges and nodes run with these seconds.
  EdgeTimes times;
  // When all is done if every edge takes as long as alone; in isolated mode that of `times`.
  int64_t isolated_makespan_ns = 0;

  // Traffic intervals of the last extraction, whose folding gave `seconds`; none in isolated mode.
  std::vector<TrafficInterval> traffic;
  // The batch in `timer` of each traffic interval, indexed by traffic interval.
  std::vector<BatchIndex> batches;
  // Isolated times of edges, and batches. Refers to `edges`.
  std::unique_ptr<TrafficIntervalTimer> timer;
  // How often traffic intervals were collected: 0 in isolated mode, else 1 or 2.
  int extractions = 0;
};

// Edges are put on devices as the setup says. Errors are those of FindWorkloadEdges, PlaceEdges,
// ReplayEdges, CollectTrafficIntervals and the timing. The setup must outlive the prediction.
absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictIteration(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    const IterationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_PREDICTION_ITERATION_PREDICTION_H_
