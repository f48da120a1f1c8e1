#include "chakra_export/graph/rank_activity.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "chakra_export/graph/execution_graph.h"

namespace meridian {
namespace {

bool IsHosts(const ExecutionGraph& graph, NodeIndex node) {
  return graph.resource(node).kind == ResourceKind::kHostThread &&
         !IsCommunication(graph.type(node));
}

std::set<int64_t> RanksWithDevices(const ExecutionGraph& graph) {
  std::set<int64_t> ranks;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (IsCommunication(graph.type(node)) || graph.is_host_gap(node)) continue;
    if (!IsHosts(graph, node)) ranks.insert(graph.rank(node));
  }
  return ranks;
}

}  // namespace

RankActivity SumActivity(std::vector<ActivityInterval> intervals, int64_t start_ns) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const ActivityInterval& a, const ActivityInterval& b) { return a.start_ns < b.start_ns; });
  RankActivity activity;
  // Up to where each is summed up, and up to where either is.
  int64_t computed_ns = start_ns, communicated_ns = start_ns, either_ns = start_ns;
  int64_t busy_ns = 0;
  const auto extend = [](const ActivityInterval& interval, int64_t* end_ns) {
    const int64_t begin_ns = std::max(interval.start_ns, *end_ns);
    *end_ns = std::max(*end_ns, interval.end_ns);
    return std::max<int64_t>(0, interval.end_ns - begin_ns);
  };
  for (const ActivityInterval& interval : intervals) {
    busy_ns += extend(interval, &either_ns);
    if (interval.is_communication) {
      activity.communicating_ns += extend(interval, &communicated_ns);
    } else {
      activity.computing_ns += extend(interval, &computed_ns);
    }
  }
  activity.span_ns = either_ns - start_ns;
  activity.exposed_ns = busy_ns - activity.computing_ns;
  return activity;
}

RankActivity MeanActivity(absl::Span<const RankActivity> ranks) {
  const auto mean = [&](int64_t RankActivity::*member) {
    double sum = 0;
    for (const RankActivity& rank : ranks) sum += static_cast<double>(rank.*member);
    return static_cast<int64_t>(sum / static_cast<double>(ranks.size()));
  };
  return {mean(&RankActivity::span_ns), mean(&RankActivity::computing_ns),
          mean(&RankActivity::communicating_ns), mean(&RankActivity::exposed_ns)};
}

std::vector<RankActivity> ActivityAt(const ExecutionGraph& graph,
                                     absl::Span<const int64_t> starts_ns,
                                     absl::Span<const int64_t> ends_ns) {
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  std::map<int64_t, std::vector<ActivityInterval>> by_rank;
  for (const int64_t rank : graph.Ranks()) by_rank[rank];
  const std::set<int64_t> with_devices = RanksWithDevices(graph);
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.is_host_gap(node) || starts_ns[node] == kNoTimeNs) continue;
    if (IsHosts(graph, node) && with_devices.count(graph.rank(node)) > 0) continue;
    first_ns = std::min(first_ns, starts_ns[node]);
    by_rank[graph.rank(node)].push_back(
        {starts_ns[node], ends_ns[node], IsCommunication(graph.type(node))});
  }
  std::vector<RankActivity> ranks;
  if (first_ns == std::numeric_limits<int64_t>::max()) return ranks;
  for (auto& [rank, intervals] : by_rank) {
    ranks.push_back(SumActivity(std::move(intervals), first_ns));
  }
  return ranks;
}

}  // namespace meridian
