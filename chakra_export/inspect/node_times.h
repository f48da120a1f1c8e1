// SPDX-License-Identifier: Apache-2.0
// When the nodes of a graph ran, and how much of that time overlaps.
#ifndef CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_
#define CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_

#include <cstdint>
#include <vector>

#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"

namespace meridian {

struct TimeInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct NodeTimes {
  // True for Unix times as the trace has them, false for times from the begin of a replay.
  bool measured = false;
  // By node; of measured times {0, 0} for a node that took no time and has no start.
  std::vector<TimeInterval> intervals;
};

// True when every node that took time says when it started, and at least one does.
bool HasStartTimes(const ExecutionGraph& graph);

// HasStartTimes must be true.
NodeTimes MeasuredTimes(const ExecutionGraph& graph);

NodeTimes ReplayedTimes(const GraphReplay& replay);

// Returns the same points of time as intervals that are apart from each other, in ascending order.
// Empty ones vanish.
std::vector<TimeInterval> UnionOf(std::vector<TimeInterval> intervals);

// Returns how long intervals last in total, and how long two lists of them overlap. The lists must
// be such as UnionOf returns.
int64_t TotalNs(const std::vector<TimeInterval>& intervals);
int64_t OverlapNs(const std::vector<TimeInterval>& a, const std::vector<TimeInterval>& b);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_
