#include "astra_bridge/schedule/edge_folding.h"

#include <cstddef>
#include <cstdint>

namespace meridian {

std::vector<double> FoldEdgeTimes(const SnapshotTimer& timer, absl::Span<const Snapshot> snapshots,
                                  absl::Span<const BatchIndex> batches, size_t edge_count) {
  // By edge: what snapshots add to the isolated time, weighed by the time spent there. An edge that
  // nothing slows down keeps its isolated time to the last bit.
  std::vector<double> added(edge_count, 0);
  std::vector<int64_t> spent_ns(edge_count, 0);
  for (size_t k = 0; k < snapshots.size(); ++k) {
    const std::vector<double>& seconds = timer.batch(batches[k]).seconds;
    const std::vector<EdgeIndex> members = timer.BatchMembers(snapshots[k]);
    for (size_t i = 0; i < members.size(); ++i) {
      const double difference = seconds[i] - timer.isolated(members[i]).seconds;
      added[members[i]] += static_cast<double>(snapshots[k].duration_ns()) * difference;
      spent_ns[members[i]] += snapshots[k].duration_ns();
    }
  }
  std::vector<double> folded(edge_count);
  for (size_t edge = 0; edge < edge_count; ++edge) {
    folded[edge] = timer.isolated(static_cast<EdgeIndex>(edge)).seconds;
    if (spent_ns[edge] > 0) folded[edge] += added[edge] / static_cast<double>(spent_ns[edge]);
  }
  return folded;
}

}  // namespace meridian
