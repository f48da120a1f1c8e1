#include "astra_bridge/schedule/snapshot_statistics.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "astra_bridge/timing/network_timing.h"
#include "xla_profiler/base/int64_range.h"

namespace meridian {

SnapshotInflation SummariseInflation(const SnapshotTimer& timer,
                                     absl::Span<const Snapshot> snapshots,
                                     absl::Span<const BatchIndex> batches) {
  SnapshotInflation inflation;
  double total_ns = 0, over_longest = 0, over_sum = 0;
  for (size_t k = 0; k < snapshots.size(); ++k) {
    const BatchEstimate& batch = timer.batch(batches[k]);
    const auto duration_ns = static_cast<double>(snapshots[k].duration_ns());
    total_ns += duration_ns;
    over_longest += duration_ns * batch.inflation;
    over_sum += duration_ns * InflationOverSum(batch);
    inflation.max_over_longest = std::max(inflation.max_over_longest, batch.inflation);
    if (snapshots[k].members.size() > 1) ++inflation.contended;
  }
  if (total_ns == 0) return inflation;
  inflation.over_longest = over_longest / total_ns;
  inflation.over_sum = over_sum / total_ns;
  return inflation;
}

std::vector<BatchUse> SlowestBatches(const SnapshotTimer& timer,
                                     absl::Span<const Snapshot> snapshots,
                                     absl::Span<const BatchIndex> batches, size_t count) {
  std::vector<BatchUse> uses(timer.batch_count());
  for (size_t k = 0; k < snapshots.size(); ++k) {
    BatchUse& use = uses[batches[k]];
    use.batch = batches[k];
    if (use.occurrences++ == 0) use.first_snapshot = k;
    use.total_ns = SaturateToInt64(absl::int128(use.total_ns) + snapshots[k].duration_ns());
  }
  const auto is_left_out = [&](const BatchUse& use) {
    return use.occurrences == 0 || timer.batch(use.batch).seconds.size() < 2;
  };
  uses.erase(std::remove_if(uses.begin(), uses.end(), is_left_out), uses.end());
  std::stable_sort(uses.begin(), uses.end(), [&](const BatchUse& a, const BatchUse& b) {
    return timer.batch(a.batch).makespan_seconds > timer.batch(b.batch).makespan_seconds;
  });
  if (uses.size() > count) uses.resize(count);
  return uses;
}

}  // namespace meridian
