// SPDX-License-Identifier: Apache-2.0
// When the nodes of a graph ran, and that as a Chrome trace: a process per rank, a thread per stream
// and host thread.
#ifndef CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_
#define CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "xla_profiler/base/files/byte_sink.h"

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

// Returns nullopt unless every node that took time says when it started, and at least one does.
std::optional<NodeTimes> MeasuredTimes(const ExecutionGraph& graph);

NodeTimes ReplayedTimes(const GraphReplay& replay);

// Times in the trace count from the earliest start. Receives have threads of their own, since they
// overlap with what their stream does. OutOfRange for times over 106 days apart.
absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_
