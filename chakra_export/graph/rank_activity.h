// SPDX-License-Identifier: Apache-2.0
// What a rank does with its time: it computes, communicates, or does neither. Computing is what its
// device does, or its host where it has none; a host gap is neither. Communication is exposed where
// nothing is computed meanwhile, and would be won by a faster network:
//
//   computing      |=====|         |=======|
//   communicating      |=======|     |==|
//   exposed               |----|
//   idle                       |---|
#ifndef CHAKRA_EXPORT_GRAPH_RANK_ACTIVITY_H_
#define CHAKRA_EXPORT_GRAPH_RANK_ACTIVITY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

class ExecutionGraph;

struct RankActivity {
  // From the first start of the run to the rank's last end.
  int64_t span_ns = 0;
  int64_t computing_ns = 0;
  int64_t communicating_ns = 0;
  int64_t exposed_ns = 0;

  int64_t idle_ns() const { return span_ns - computing_ns - exposed_ns; }
};

struct ActivityInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool is_communication = false;
};

// Returns what a rank did in a run that started at `start_ns`. Intervals may overlap.
RankActivity SumActivity(std::vector<ActivityInterval> intervals, int64_t start_ns);

// Returns the mean of ranks, of which there is at least one.
RankActivity MeanActivity(absl::Span<const RankActivity> ranks);

// Returns what each rank does, in the order of the graph's ranks, when nodes start and end at these
// times, by node; kNoTimeNs for nodes that are to be left out. Empty for a graph without others.
std::vector<RankActivity> ActivityAt(const ExecutionGraph& graph,
                                     absl::Span<const int64_t> starts_ns,
                                     absl::Span<const int64_t> ends_ns);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_RANK_ACTIVITY_H_
