#include "astra_bridge/schedule/snapshot_manifest.h"

#include <string>
#include <vector>

#include "astra_bridge/edges/comm_edge.h"
#include "astra_bridge/edges/timed_kind.h"
#include "astra_bridge/schedule/edge_domains.h"
#include "astra_bridge/schedule/workload_edges.h"

namespace meridian {
namespace {

void AddEdge(const IterationPrediction& prediction, const ExecutionGraph& graph, EdgeIndex index,
             SnapshotManifest* manifest) {
  const CommEdge& edge = prediction.edges.edges[index];
  ManifestEdge* added = manifest->add_edges();
  added->set_id(edge.id);
  added->set_name(std::string(graph.name(prediction.edges.nodes[index])));
  added->set_kind(std::string(CollectiveKindName(edge.kind)));
  added->set_bytes(edge.bytes);
  added->mutable_participants()->Add(edge.participants.begin(), edge.participants.end());
  added->set_group_id(edge.group_id);
  added->set_topology_key(edge.topology_key);
  added->set_isolated_seconds(prediction.timer->isolated(index).seconds);
  added->set_fallback_reason(prediction.timer->isolated(index).fallback_reason);
  added->set_start_ns(prediction.snapshot_intervals[index].start_ns);
  added->set_end_ns(prediction.snapshot_intervals[index].end_ns);
  added->set_seconds(prediction.seconds[index]);
  added->set_predicted_start_ns(prediction.schedule.intervals[index].start_ns);
  added->set_predicted_end_ns(prediction.schedule.intervals[index].end_ns);
}

void AddSnapshot(const IterationPrediction& prediction, size_t number, SnapshotManifest* manifest) {
  const Snapshot& snapshot = prediction.snapshots[number];
  ManifestSnapshot* added = manifest->add_snapshots();
  added->set_start_ns(snapshot.start_ns);
  added->set_end_ns(snapshot.end_ns);
  added->set_batch(prediction.batches[number]);
  const std::vector<EdgeIndex> members = prediction.timer->BatchMembers(snapshot);
  added->mutable_edges()->Add(members.begin(), members.end());
  added->set_bytes(TotalBytes(prediction.edges.edges, members));
}

void AddBatch(const BatchEstimate& batch, SnapshotManifest* manifest) {
  ManifestBatch* added = manifest->add_batches();
  added->mutable_seconds()->Add(batch.seconds.begin(), batch.seconds.end());
  added->set_makespan_seconds(batch.makespan_seconds);
  added->set_inflation(batch.inflation);
  added->set_inflation_over_sum(InflationOverSum(batch));
  added->set_rule(std::string(BatchRuleName(batch.rule)));
  added->set_fallback_reason(batch.fallback_reason);
}

}  // namespace

SnapshotManifest MakeSnapshotManifest(const IterationPrediction& prediction,
                                      const IterationOptions& options, const TimingEngine& engine,
                                      const ExecutionGraph& graph) {
  SnapshotManifest manifest;
  manifest.set_engine(engine.name);
  manifest.set_engine_version(engine.version);
  manifest.set_partition(std::string(SnapshotPartitionName(options.partition)));
  manifest.set_coalesce_below_bytes(options.coalesce_below_bytes);
  manifest.set_extractions(prediction.extractions);
  manifest.set_isolated_iteration_ns(prediction.isolated_makespan_ns);
  manifest.set_iteration_ns(prediction.schedule.replay.makespan_ns);
  for (EdgeIndex edge = 0; edge < prediction.edges.edges.size(); ++edge) {
    AddEdge(prediction, graph, edge, &manifest);
  }
  for (size_t number = 0; number < prediction.snapshots.size(); ++number) {
    AddSnapshot(prediction, number, &manifest);
  }
  for (BatchIndex batch = 0; batch < prediction.timer->batch_count(); ++batch) {
    AddBatch(prediction.timer->batch(batch), &manifest);
  }
  return manifest;
}

}  // namespace meridian
