#include "astra_bridge/prediction/traffic_intervals.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/status/status.h"

namespace meridian {
namespace {

// So that traces made to overlap everywhere cannot exhaust the memory.
constexpr size_t kMaxMembers = 50'000'000;

// Sums of hashes of edges by time: the difference of two such sums is the sum over a set of edges.
class HashSums {
 public:
  void Add(int64_t time_ns, size_t edge) { entries_.push_back({time_ns, absl::HashOf(edge)}); }

  void Finish() {
    std::sort(entries_.begin(), entries_.end());
    uint64_t sum = 0;
    for (auto& [time_ns, value] : entries_) value = sum += value;
  }

  // Returns the sum over all edges with a time before time_ns.
  uint64_t Before(int64_t time_ns) const {
    const auto it = std::lower_bound(
        entries_.begin(), entries_.end(), time_ns,
        [](const std::pair<int64_t, uint64_t>& entry, int64_t t) { return entry.first < t; });
    return it == entries_.begin() ? 0 : (it - 1)->second;
  }

 private:
  std::vector<std::pair<int64_t, uint64_t>> entries_;
};

}  // namespace

absl::StatusOr<std::vector<TrafficInterval>> CollectTrafficIntervals(
    absl::Span<const EdgeInterval> intervals) {
  // Every edge is there twice: when it starts and when it ends.
  std::vector<std::pair<int64_t, CommEdgeIndex>> changes;
  for (CommEdgeIndex edge = 0; edge < intervals.size(); ++edge) {
    if (intervals[edge].duration_ns() <= 0) continue;
    changes.push_back({intervals[edge].start_ns, edge});
    changes.push_back({intervals[edge].end_ns, edge});
  }
  std::sort(changes.begin(), changes.end());
  std::vector<TrafficInterval> traffic;
  std::vector<CommEdgeIndex> active;
  size_t members = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const auto [now_ns, edge] = changes[i];
    const auto place = std::lower_bound(active.begin(), active.end(), edge);
    if (place != active.end() && *place == edge) {
      active.erase(place);
    } else {
      active.insert(place, edge);
    }
    // After the last change nothing is active.
    if (active.empty() || changes[i + 1].first == now_ns) continue;
    members += active.size();
    if (members > kMaxMembers) {
      return absl::OutOfRangeError(
          "the snapshots have more than 50 million members; predict fewer steps, or with "
          "--mode=isolated");
    }
    traffic.push_back({now_ns, changes[i + 1].first, active});
  }
  return traffic;
}

std::vector<uint64_t> ConcurrencyFingerprints(absl::Span<const EdgeInterval> intervals) {
  HashSums starts, ends;
  for (size_t edge = 0; edge < intervals.size(); ++edge) {
    if (intervals[edge].duration_ns() <= 0) continue;
    starts.Add(intervals[edge].start_ns, edge);
    ends.Add(intervals[edge].end_ns, edge);
  }
  starts.Finish();
  ends.Finish();
  std::vector<uint64_t> fingerprints(intervals.size(), 0);
  for (size_t edge = 0; edge < intervals.size(); ++edge) {
    if (intervals[edge].duration_ns() <= 0) continue;
    // Those that begin before it ends, less those that were over when it began.
    fingerprints[edge] =
        starts.Before(intervals[edge].end_ns) - ends.Before(intervals[edge].start_ns + 1);
  }
  return fingerprints;
}

double ChangedShare(absl::Span<const uint64_t> before, absl::Span<const uint64_t> after) {
  int64_t edges = 0, changed = 0;
  for (size_t edge = 0; edge < before.size(); ++edge) {
    if (before[edge] != 0 || after[edge] != 0) ++edges;
    if (before[edge] != after[edge]) ++changed;
  }
  return edges == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(edges);
}

}  // namespace meridian
