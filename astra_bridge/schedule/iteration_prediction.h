// SPDX-License-Identifier: Apache-2.0
// How long a workload takes on a network, with what runs at once slowing each other down:
//
//   schedule with isolated times -> snapshots -> batch times -> folded edge times -> schedule
//                                       ^                                               |
//                                       +----- once more, when more than 5 % of the ----+
//                                              edges run beside others than before
//
// A snapshot is a traffic snapshot (traffic_snapshots.h). docs/astra_predict.md has the formulas
// and their limits.
#ifndef ASTRA_BRIDGE_SCHEDULE_ITERATION_PREDICTION_H_
#define ASTRA_BRIDGE_SCHEDULE_ITERATION_PREDICTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/traffic_snapshot_timer.h"
#include "astra_bridge/schedule/traffic_snapshots.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

struct IterationOptions {
  TimingMode mode = TimingMode::kIsolated;
  ReplayResources resources = ReplayResources::kPerResource;
  TrafficSnapshotPartition partition = TrafficSnapshotPartition::kNone;
  int64_t coalesce_below_bytes = 0;
  int threads = 1;
  // Told what is being done, e.g. "timing snapshots", and how far it is. May be null.
  std::function<void(absl::string_view stage, uint64_t done, uint64_t total)> progress;
};

// What the prediction itself cost, in wall time.
struct IterationCost {
  // Spent in the NetworkTiming.
  absl::Duration timing_edges;
  absl::Duration timing_snapshots;
  absl::Duration replaying;
  // Spent on all else: finding edges, collecting snapshots, folding times.
  absl::Duration collecting;
};

struct IterationPrediction {
  // The edges of the workload, on devices.
  WorkloadEdges edges;
  // How long each edge takes, in seconds, by edge.
  std::vector<double> seconds;
  // The schedule with these seconds.
  EdgeSchedule schedule;
  // When all is done if every edge takes as long as alone; in isolated mode that of `schedule`.
  int64_t isolated_makespan_ns = 0;

  // Traffic snapshots of the last extraction, whose folding gave `seconds`; none in isolated mode.
  std::vector<TrafficSnapshot> snapshots;
  // When each edge is under way in the schedule that the snapshots are of, the one before
  // `schedule`; by edge. Empty in isolated mode.
  std::vector<EdgeInterval> snapshot_intervals;
  // The batch in `timer` of each traffic snapshot, indexed by traffic snapshot.
  std::vector<BatchIndex> batches;
  // Isolated times of edges, and batches. Refers to `edges`.
  std::unique_ptr<TrafficSnapshotTimer> timer;
  // How often snapshots were collected: 0 in isolated mode, else 1 or 2.
  int extractions = 0;
  // The share of edges that ran beside others after the first folding than before.
  double changed_share = 0;

  IterationCost cost;
};

// Edges are put on devices as the setup says. Errors are those of FindWorkloadEdges, PlaceEdges,
// ScheduleEdges, CollectTrafficSnapshots and the timing. The setup must outlive the prediction.
absl::StatusOr<std::unique_ptr<IterationPrediction>> PredictIteration(
    const TimingSetup& setup, const ExecutionGraph& graph, const CommunicationMatch& match,
    const IterationOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_ITERATION_PREDICTION_H_
