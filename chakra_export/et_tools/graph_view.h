// SPDX-License-Identifier: Apache-2.0
// A graph for viewers: in the language of Graphviz, and when its nodes ran as a Chrome trace.
#ifndef CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_
#define CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Graphviz takes minutes for more nodes than this, and nobody finds anything in the picture.
inline constexpr size_t kMaxDotNodes = 1000;

// Returns the graph for Graphviz, ranks in boxes; messages and collectives are joined by dotted
// lines. InvalidArgument for more than kMaxDotNodes nodes.
absl::StatusOr<std::string> GraphDot(const ExecutionGraph& graph);

// When nodes ran, in nanoseconds.
struct NodeTimes {
  // Unix times as the trace has them, or times from the begin of a replay, by node; kNoTimeNs for a measured node that took no time and has no start.
  std::vector<int64_t> starts_ns;
  std::vector<int64_t> ends_ns;
};

// Returns nullopt unless every node that took time says when it started, and at least one does.
std::optional<NodeTimes> MeasuredTimes(const ExecutionGraph& graph);

// Returns the measured times, or else those of a replay as ASTRA-sim would run the graph; the error
// is that of the replay.
absl::StatusOr<NodeTimes> MeasuredOrReplayedTimes(const ExecutionGraph& graph);

// Writes a Chrome trace: a process per rank, a thread per stream and host thread. Times in the
// trace count from the earliest start. Receives have threads of their own, since they overlap with
// what their stream does. OutOfRange for times over 106 days apart.
absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_GRAPH_VIEW_H_
