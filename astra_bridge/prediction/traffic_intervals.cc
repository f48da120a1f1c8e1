#include "astra_bridge/prediction/traffic_intervals.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// So that traces made to overlap everywhere cannot exhaust the memory.
constexpr size_t kMaxMembers = 50'000'000;

// Splits sets of edges into parts that cannot meet.
class DomainSplitter {
 public:
  explicit DomainSplitter(const EdgeDomains& domains)
      : domains_(domains), owner_(domains.domain_count(), kNobody) {}

  // Returns the parts in the order of their first members; edges ascend, and so do members.
  std::vector<std::vector<CommEdgeIndex>> Split(const std::vector<CommEdgeIndex>& list) {
    root_.resize(list.size());
    std::iota(root_.begin(), root_.end(), 0u);
    for (uint32_t i = 0; i < list.size(); ++i) {
      for (const uint32_t domain : domains_.Of(list[i])) {
        if (owner_[domain] == kNobody) owner_[domain] = i;
        Join(owner_[domain], i);
      }
    }
    std::vector<std::vector<CommEdgeIndex>> parts;
    std::vector<uint32_t> part_of_root(list.size(), kNobody);
    for (uint32_t i = 0; i < list.size(); ++i) {
      uint32_t& part = part_of_root[Root(i)];
      if (part == kNobody) {
        part = static_cast<uint32_t>(parts.size());
        parts.emplace_back();
      }
      parts[part].push_back(list[i]);
      for (const uint32_t domain : domains_.Of(list[i])) owner_[domain] = kNobody;
    }
    return parts;
  }

 private:
  static constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

  uint32_t Root(uint32_t i) {
    while (root_[i] != i) i = root_[i] = root_[root_[i]];
    return i;
  }
  void Join(uint32_t a, uint32_t b) { root_[Root(b)] = Root(a); }

  const EdgeDomains& domains_;
  // Position of the first edge of the set that has each domain, or kNobody, indexed by domain.
  std::vector<uint32_t> owner_;
  // A forest of the parts, by position in the set: a root leads to itself.
  std::vector<uint32_t> root_;
};

class Collector {
 public:
  Collector(absl::Span<const EdgeInterval> intervals, const std::vector<bool>& takes_part,
            const EdgeDomains& domains)
      : intervals_(intervals), domains_(domains), splitter_(domains) {
    for (CommEdgeIndex edge = 0; edge < intervals.size(); ++edge) {
      if (!takes_part[edge] || intervals[edge].duration_ns() <= 0) continue;
      starts_.push_back(edge);
      ends_.push_back(edge);
    }
    std::sort(starts_.begin(), starts_.end(), [&](CommEdgeIndex a, CommEdgeIndex b) {
      return std::make_pair(intervals[a].start_ns, a) < std::make_pair(intervals[b].start_ns, b);
    });
    std::sort(ends_.begin(), ends_.end(), [&](CommEdgeIndex a, CommEdgeIndex b) {
      return std::make_pair(intervals[a].end_ns, a) < std::make_pair(intervals[b].end_ns, b);
    });
  }

  absl::StatusOr<std::vector<TrafficInterval>> Run() {
    size_t start = 0, end = 0;
    while (end < ends_.size()) {
      const int64_t now_ns = NextChange(start, end);
      while (end < ends_.size() && intervals_[ends_[end]].end_ns == now_ns) {
        Deactivate(ends_[end++]);
      }
      while (start < starts_.size() && intervals_[starts_[start]].start_ns == now_ns) {
        Activate(starts_[start++]);
      }
      if (end == ends_.size()) break;
      RETURN_IF_ERROR(AddParts({now_ns, NextChange(start, end)}));
    }
    return std::move(traffic_);
  }

 private:
  using Parts = absl::flat_hash_map<std::vector<CommEdgeIndex>, size_t>;

  void Activate(CommEdgeIndex edge) {
    active_.insert(std::lower_bound(active_.begin(), active_.end(), edge), edge);
  }
  void Deactivate(CommEdgeIndex edge) {
    active_.erase(std::lower_bound(active_.begin(), active_.end(), edge));
  }

  int64_t NextChange(size_t start, size_t end) const {
    const int64_t end_ns = intervals_[ends_[end]].end_ns;
    return start == starts_.size() ? end_ns : std::min(end_ns, intervals_[starts_[start]].start_ns);
  }

  // A part that was there in the interval before goes on; all others begin.
  absl::Status AddParts(const EdgeInterval& interval) {
    if (active_.empty()) {
      open_.clear();
      return absl::OkStatus();
    }
    // Every change point changes the one part there is.
    if (domains_.domain_count() == 1) {
      return Add(interval, active_);
    }
    Parts open;
    for (std::vector<CommEdgeIndex>& part : splitter_.Split(active_)) {
      const auto before = open_.find(part);
      if (before != open_.end()) {
        traffic_[before->second].end_ns = interval.end_ns;
        open.emplace(std::move(part), before->second);
      } else {
        open.emplace(part, traffic_.size());
        RETURN_IF_ERROR(Add(interval, std::move(part)));
      }
    }
    open_ = std::move(open);
    return absl::OkStatus();
  }

  absl::Status Add(const EdgeInterval& interval, std::vector<CommEdgeIndex> members) {
    members_ += members.size();
    if (members_ > kMaxMembers) {
      return absl::OutOfRangeError(
          "the snapshots have more than 50 million members; keep edges apart with "
          "--partition=link_domain, or leave small ones out with --coalesce_below_kib");
    }
    traffic_.push_back({interval.start_ns, interval.end_ns, std::move(members)});
    return absl::OkStatus();
  }

  const absl::Span<const EdgeInterval> intervals_;
  const EdgeDomains& domains_;
  DomainSplitter splitter_;
  // Edges by the time they start and end.
  std::vector<CommEdgeIndex> starts_;
  std::vector<CommEdgeIndex> ends_;
  // The edges under way, ascending.
  std::vector<CommEdgeIndex> active_;
  // Positions of the intervals that may go on, by their members.
  Parts open_;
  size_t members_ = 0;
  std::vector<TrafficInterval> traffic_;
};

// Spreads numbers over 64 bits such that sums of different sets differ.
uint64_t Mixed(uint64_t number) {
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

// Sums of hashes of edges by time: the difference of two such sums is the sum over a set of edges.
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

std::vector<bool> EdgesInTrafficIntervals(absl::Span<const CommEdge> edges,
                                          int64_t coalesce_below_bytes) {
  std::vector<bool> takes_part;
  takes_part.reserve(edges.size());
  for (const CommEdge& edge : edges) {
    takes_part.push_back(UsesNetwork(edge) && edge.bytes >= coalesce_below_bytes);
  }
  return takes_part;
}

absl::StatusOr<std::vector<TrafficInterval>> CollectTrafficIntervals(
    absl::Span<const EdgeInterval> intervals, const std::vector<bool>& takes_part,
    const EdgeDomains& domains) {
  return Collector(intervals, takes_part, domains).Run();
}

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
    // Those that begin before it ends, less those that were over when it began.
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
