// The record of a prediction's snapshots: intervals, members, sizes, times.
#ifndef ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_
#define ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_

#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/schedule/snapshot_manifest.pb.h"
#include "astra_bridge/timing/network_timing.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// The prediction is one in snapshot mode.
SnapshotManifest MakeSnapshotManifest(const IterationPrediction& prediction,
                                      const IterationOptions& options, const TimingEngine& engine,
                                      const ExecutionGraph& graph);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_
