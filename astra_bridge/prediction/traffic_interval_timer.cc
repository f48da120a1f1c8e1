#include "astra_bridge/prediction/traffic_interval_timer.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel_for.h"

namespace meridian {

TrafficIntervalTimer::TrafficIntervalTimer(NetworkTiming& timing, absl::Span<const CommEdge> edges,
                                           int threads)
    : timing_(timing), edges_(edges), threads_(threads) {
  NumberShapes();
}

void TrafficIntervalTimer::NumberShapes() {
  std::map<std::tuple<absl::string_view, CollectiveKind, int64_t, AlgorithmHint,
                      absl::Span<const int32_t>>,
           std::vector<CommEdgeIndex>>
      edges_of_shape;
  for (CommEdgeIndex i = 0; i < edges_.size(); ++i) {
    const CommEdge& edge = edges_[i];
    edges_of_shape[{edge.topology_key, edge.kind, edge.bytes, edge.hint, edge.participants}]
        .push_back(i);
  }
  shape_of_.resize(edges_.size());
  for (const auto& [shape, edges] : edges_of_shape) {
    for (const CommEdgeIndex edge : edges) {
      shape_of_[edge] = static_cast<ShapeIndex>(examples_.size());
    }
    examples_.push_back(edges[0]);
  }
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

double MeanInflation(const TrafficIntervalTimer& timer, absl::Span<const TrafficInterval> traffic,
                     absl::Span<const BatchIndex> batches) {
  double total_ns = 0, inflated_ns = 0;
  for (size_t k = 0; k < traffic.size(); ++k) {
    const auto duration_ns = static_cast<double>(traffic[k].duration_ns());
    total_ns += duration_ns;
    inflated_ns += duration_ns * timer.batch(batches[k]).inflation;
  }
  return total_ns > 0 ? inflated_ns / total_ns : 1;
}

}  // namespace meridian
