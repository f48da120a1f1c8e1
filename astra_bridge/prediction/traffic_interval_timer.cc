#include "astra_bridge/prediction/traffic_interval_timer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel_for.h"

namespace meridian {

TrafficIntervalTimer::TrafficIntervalTimer(NetworkTiming& timing, absl::Span<const CommEdge> edges,
                                           int threads)
    : timing_(timing), edges_(edges), threads_(threads) {
  NumberShapes();
}

void TrafficIntervalTimer::NumberShapes() {
  // Numbered in the order of first use at first; no edge's text has a line break.
  absl::flat_hash_map<std::string, ShapeIndex> found;
  std::vector<CommEdge> distinct;
  std::vector<CommEdgeIndex> first_edges;
  for (CommEdgeIndex edge = 0; edge < edges_.size(); ++edge) {
    const auto [it, added] =
        found.emplace(absl::StrCat(CanonicalText(edges_[edge]), "\n", edges_[edge].topology_key),
                      static_cast<ShapeIndex>(distinct.size()));
    if (added) {
      distinct.push_back(edges_[edge]);
      first_edges.push_back(edge);
    }
    shape_of_.push_back(it->second);
  }
  std::vector<size_t> order = CanonicalOrder(distinct);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return distinct[a].topology_key < distinct[b].topology_key;
  });
  std::vector<ShapeIndex> renumbered(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    renumbered[order[i]] = static_cast<ShapeIndex>(i);
    examples_.push_back(first_edges[order[i]]);
  }
  for (ShapeIndex& shape : shape_of_) shape = renumbered[shape];
}

absl::Status TrafficIntervalTimer::TimeEdges(TimingProgress progress) {
  const size_t count = examples_.size();
  isolated_.resize(count);
  return ParallelFor(
      count, threads_,
      [&](size_t shape) -> absl::Status {
        ASSIGN_OR_RETURN(isolated_[shape], timing_.EstimateEdge(edges_[examples_[shape]]));
        return absl::OkStatus();
      },
      progress);
}

absl::StatusOr<std::vector<BatchIndex>> TrafficIntervalTimer::TimeIntervals(
    absl::Span<const TrafficInterval> traffic, TimingProgress progress) {
  std::vector<BatchIndex> batch_of_interval;
  // The first interval of each new content.
  std::vector<const TrafficInterval*> fresh;
  const size_t known = batches_.size();
  for (const TrafficInterval& interval : traffic) {
    std::vector<ShapeIndex> content;
    content.reserve(interval.members.size());
    for (const CommEdgeIndex edge : interval.members) content.push_back(shape_of_[edge]);
    std::sort(content.begin(), content.end());
    const auto [it, added] =
        known_.emplace(std::move(content), static_cast<BatchIndex>(known + fresh.size()));
    if (added) fresh.push_back(&interval);
    batch_of_interval.push_back(it->second);
  }
  batches_.resize(known + fresh.size());
  RETURN_IF_ERROR(ParallelFor(
      fresh.size(), threads_,
      [&](size_t i) -> absl::Status {
        ASSIGN_OR_RETURN(batches_[known + i], TimeBatch(*fresh[i]));
        return absl::OkStatus();
      },
      progress));
  return batch_of_interval;
}

std::vector<CommEdgeIndex> TrafficIntervalTimer::BatchMembers(
    const TrafficInterval& interval) const {
  std::vector<CommEdgeIndex> members = interval.members;
  std::stable_sort(members.begin(), members.end(), [this](CommEdgeIndex a, CommEdgeIndex b) {
    return shape_of_[a] < shape_of_[b];
  });
  return members;
}

absl::StatusOr<BatchEstimate> TrafficIntervalTimer::TimeBatch(
    const TrafficInterval& interval) const {
  if (interval.members.size() == 1) {
    BatchEstimate alone;
    alone.isolated = {isolated(interval.members[0])};
    alone.seconds = {alone.isolated[0].seconds};
    SummariseBatch(&alone);
    return alone;
  }
  std::vector<CommEdge> edges;
  edges.reserve(interval.members.size());
  for (const CommEdgeIndex edge : BatchMembers(interval)) edges.push_back(edges_[edge]);
  return timing_.EstimateBatch(edges);
}

std::vector<double> FoldEdgeTimes(const TrafficIntervalTimer& timer,
                                  absl::Span<const TrafficInterval> traffic,
                                  absl::Span<const BatchIndex> batches) {
  const size_t edge_count = timer.edge_count();
  // By edge: what intervals add to the isolated time, weighed by the time spent there, and that
  // time in all. An edge that nothing slows down keeps its isolated time to the last bit.
  std::vector<double> added(edge_count, 0);
  std::vector<int64_t> spent_ns(edge_count, 0);
  for (size_t k = 0; k < traffic.size(); ++k) {
    const std::vector<double>& seconds = timer.batch(batches[k]).seconds;
    const std::vector<CommEdgeIndex> members = timer.BatchMembers(traffic[k]);
    for (size_t i = 0; i < members.size(); ++i) {
      const double difference = seconds[i] - timer.isolated(members[i]).seconds;
      added[members[i]] += static_cast<double>(traffic[k].duration_ns()) * difference;
      spent_ns[members[i]] += traffic[k].duration_ns();
    }
  }
  std::vector<double> folded(edge_count);
  for (size_t edge = 0; edge < edge_count; ++edge) {
    folded[edge] = timer.isolated(static_cast<CommEdgeIndex>(edge)).seconds;
    if (spent_ns[edge] > 0) folded[edge] += added[edge] / static_cast<double>(spent_ns[edge]);
  }
  return folded;
}

TrafficInflation SummariseInflation(const TrafficIntervalTimer& timer,
                                    absl::Span<const TrafficInterval> traffic,
                                    absl::Span<const BatchIndex> batches) {
  TrafficInflation inflation;
  double total_ns = 0, over_longest = 0, over_sum = 0;
  for (size_t k = 0; k < traffic.size(); ++k) {
    const BatchEstimate& batch = timer.batch(batches[k]);
    const auto duration_ns = static_cast<double>(traffic[k].duration_ns());
    total_ns += duration_ns;
    over_longest += duration_ns * batch.inflation;
    over_sum += duration_ns * InflationOverSum(batch);
    inflation.max_over_longest = std::max(inflation.max_over_longest, batch.inflation);
    if (traffic[k].members.size() > 1) ++inflation.contended;
  }
  if (total_ns == 0) return inflation;
  inflation.over_longest = over_longest / total_ns;
  inflation.over_sum = over_sum / total_ns;
  return inflation;
}

}  // namespace meridian
