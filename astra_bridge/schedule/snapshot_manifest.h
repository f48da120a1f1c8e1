// The record of a prediction's snapshots: intervals, members, sizes, times.
#ifndef ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_
#define ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_

#include <cstdint>

#include "absl/types/span.h"
#include "astra_bridge/comm_edge.h"
#include "astra_bridge/network_timing.h"
#include "astra_bridge/schedule/iteration_prediction.h"
#include "astra_bridge/schedule/snapshot_manifest.pb.h"
#include "astra_bridge/schedule/workload_edges.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

// Returns the makespan over the sum of the isolated times; 1 when nothing takes time.
double InflationOverSum(const BatchEstimate& batch);

// Returns the bytes of all edges together, at most what an int64 holds.
int64_t TotalBytes(absl::Span<const CommEdge> edges, absl::Span<const EdgeIndex> members);

// The prediction is one in snapshot mode.
SnapshotManifest MakeSnapshotManifest(const IterationPrediction& prediction,
                                      const IterationOptions& options, const TimingEngine& engine,
                                      const ExecutionGraph& graph);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SCHEDULE_SNAPSHOT_MANIFEST_H_
