#include "chakra_export/inspect/node_times.h"

#include <algorithm>
#include <cstddef>

namespace meridian {

bool HasStartTimes(const ExecutionGraph& graph) {
  bool any = false;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool known = graph.start_ns(node) != kNoTimeNs;
    if (!known && graph.duration_ns(node) > 0) return false;
    any |= known;
  }
  return any;
}

NodeTimes MeasuredTimes(const ExecutionGraph& graph) {
  NodeTimes times;
  times.measured = true;
  times.intervals.resize(graph.node_count());
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const int64_t start_ns = graph.start_ns(node);
    if (start_ns == kNoTimeNs) continue;
    times.intervals[node] = {start_ns, start_ns + graph.duration_ns(node)};
  }
  return times;
}

NodeTimes ReplayedTimes(const GraphReplay& replay) {
  NodeTimes times;
  times.intervals.resize(replay.starts_ns.size());
  for (size_t node = 0; node < times.intervals.size(); ++node) {
    times.intervals[node] = {replay.starts_ns[node], replay.ends_ns[node]};
  }
  return times;
}

std::vector<TimeInterval> UnionOf(std::vector<TimeInterval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.start_ns < b.start_ns; });
  std::vector<TimeInterval> apart;
  for (const TimeInterval& interval : intervals) {
    if (interval.end_ns <= interval.start_ns) continue;
    if (!apart.empty() && interval.start_ns <= apart.back().end_ns) {
      apart.back().end_ns = std::max(apart.back().end_ns, interval.end_ns);
    } else {
      apart.push_back(interval);
    }
  }
  return apart;
}

int64_t TotalNs(const std::vector<TimeInterval>& intervals) {
  int64_t total_ns = 0;
  for (const TimeInterval& interval : intervals) total_ns += interval.end_ns - interval.start_ns;
  return total_ns;
}

int64_t OverlapNs(const std::vector<TimeInterval>& a, const std::vector<TimeInterval>& b) {
  int64_t overlap_ns = 0;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const int64_t start_ns = std::max(a[i].start_ns, b[j].start_ns);
    const int64_t end_ns = std::min(a[i].end_ns, b[j].end_ns);
    if (end_ns > start_ns) overlap_ns += end_ns - start_ns;
    // What ends first meets nothing more of the other.
    if (a[i].end_ns < b[j].end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return overlap_ns;
}

}  // namespace meridian
