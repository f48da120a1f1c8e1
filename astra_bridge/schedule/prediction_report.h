// SPDX-License-Identifier: Apache-2.0
// What predictions say, as messages for programs; prediction_text.h has the same for people.
#ifndef ASTRA_BRIDGE_SCHEDULE_PREDICTION_REPORT_H_
#define ASTRA_BRIDGE_SCHEDULE_PREDICTION_REPORT_H_

#include "absl/strings/string_view.h"
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/configuration/timing_setup.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

class PredictionReport;  // prediction_report.proto
class SnapshotManifest;  // snapshot_manifest.proto

// Returns the report of a workload's prediction.
PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match);

// Returns the record of a prediction's traffic snapshots: intervals, members, sizes, times. The
// prediction is one in snapshot mode.
SnapshotManifest MakeSnapshotManifest(const IterationPrediction& prediction,
                                      const IterationOptions& options, const TimingEngine& engine,
                                      const ExecutionGraph& graph);

// What the reports of workloads and of lists of edges have in common.

// Sets engine, version and mode, and adds the warnings of the setup. To be called before the
// timing.
void AddTimingBasis(const TimingSetup& setup, TimingMode mode, PredictionReport* report);

// Sets hits and misses, and adds the warnings of the cache, if there is one. To be called after the
// timing.
void AddCacheUse(const TimingSetup& setup, PredictionReport* report);

// Counts an edge, or a batch when the id is empty, that another than the engine timed; the first
// 100 are listed.
void AddFallback(absl::string_view edge_id, absl::string_view reason, PredictionReport* report);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_PREDICTION_REPORT_H_
