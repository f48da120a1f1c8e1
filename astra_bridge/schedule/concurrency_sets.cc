#include "astra_bridge/schedule/concurrency_sets.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace meridian {
namespace {

// Spreads numbers over 64 bits such that sums of different sets differ.
uint64_t Mixed(uint64_t number) {
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

// Sums of hashes of edges by time: differences of such sums are sums over sets.
class HashSums {
 public:
  void Add(int64_t time_ns, size_t edge) { entries_.push_back({time_ns, Mixed(edge)}); }

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

std::vector<uint64_t> ConcurrencyFingerprints(absl::Span<const EdgeInterval> intervals,
                                              const std::vector<bool>& takes_part) {
  const auto counts = [&](size_t edge) {
    return takes_part[edge] && intervals[edge].duration_ns() > 0;
  };
  HashSums starts, ends;
  for (size_t edge = 0; edge < intervals.size(); ++edge) {
    if (!counts(edge)) continue;
    starts.Add(intervals[edge].start_ns, edge);
    ends.Add(intervals[edge].end_ns, edge);
  }
  starts.Finish();
  ends.Finish();
  std::vector<uint64_t> fingerprints(intervals.size(), 0);
  for (size_t edge = 0; edge < intervals.size(); ++edge) {
    if (!counts(edge)) continue;
    // Begun before it ends, less those that were over when it began.
    fingerprints[edge] =
        starts.Before(intervals[edge].end_ns) - ends.Before(intervals[edge].start_ns + 1);
  }
  return fingerprints;
}

double ChangedShare(absl::Span<const uint64_t> before, absl::Span<const uint64_t> after,
                    const std::vector<bool>& takes_part) {
  int64_t edges = 0, changed = 0;
  for (size_t edge = 0; edge < before.size(); ++edge) {
    if (!takes_part[edge]) continue;
    ++edges;
    if (before[edge] != after[edge]) ++changed;
  }
  return edges == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(edges);
}

}  // namespace meridian
