#include "astra_bridge/schedule/snapshot_timer.h"

#include <algorithm>
#include <utility>

#include "xla_profiler/base/parallel_for.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {

SnapshotTimer::SnapshotTimer(NetworkTiming& timing, absl::Span<const CommEdge> edges, int threads)
    : timing_(timing), edges_(edges), threads_(threads), shapes_(FindEdgeShapes(edges)) {}

absl::Status SnapshotTimer::TimeEdges(TimingProgress progress) {
  const size_t count = shapes_.examples.size();
  isolated_.resize(count);
  return ParallelFor(
      count, threads_,
      [&](size_t shape) -> absl::Status {
        ASSIGN_OR_RETURN(isolated_[shape], timing_.EstimateEdge(edges_[shapes_.examples[shape]]));
        return absl::OkStatus();
      },
      [&](uint64_t done) { progress(done, count); });
}

absl::StatusOr<std::vector<BatchIndex>> SnapshotTimer::TimeSnapshots(
    absl::Span<const Snapshot> snapshots, TimingProgress progress) {
  std::vector<BatchIndex> batch_of_snapshot;
  // The first snapshot of each new content.
  std::vector<const Snapshot*> fresh;
  const size_t known = batches_.size();
  for (const Snapshot& snapshot : snapshots) {
    Content content;
    content.reserve(snapshot.members.size());
    for (const EdgeIndex edge : snapshot.members) content.push_back(shapes_.shape_of[edge]);
    std::sort(content.begin(), content.end());
    const auto [it, added] =
        known_.emplace(std::move(content), static_cast<BatchIndex>(known + fresh.size()));
    if (added) fresh.push_back(&snapshot);
    batch_of_snapshot.push_back(it->second);
  }
  batches_.resize(known + fresh.size());
  RETURN_IF_ERROR(ParallelFor(
      fresh.size(), threads_,
      [&](size_t i) -> absl::Status {
        ASSIGN_OR_RETURN(batches_[known + i], TimeBatch(*fresh[i]));
        return absl::OkStatus();
      },
      [&](uint64_t done) { progress(done, fresh.size()); }));
  return batch_of_snapshot;
}

std::vector<EdgeIndex> SnapshotTimer::BatchMembers(const Snapshot& snapshot) const {
  std::vector<EdgeIndex> members = snapshot.members;
  std::stable_sort(members.begin(), members.end(), [this](EdgeIndex a, EdgeIndex b) {
    return shapes_.shape_of[a] < shapes_.shape_of[b];
  });
  return members;
}

absl::StatusOr<BatchEstimate> SnapshotTimer::TimeBatch(const Snapshot& snapshot) const {
  if (snapshot.members.size() == 1) {
    BatchEstimate alone;
    alone.isolated = {isolated(snapshot.members[0])};
    alone.seconds = {alone.isolated[0].seconds};
    SummariseBatch(&alone);
    return alone;
  }
  std::vector<CommEdge> edges;
  edges.reserve(snapshot.members.size());
  for (const EdgeIndex edge : BatchMembers(snapshot)) edges.push_back(edges_[edge]);
  return timing_.EstimateBatch(edges);
}

}  // namespace meridian
