// When the nodes of a graph ran.
#ifndef CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_
#define CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/inspect/interval_union.h"

namespace meridian {

struct NodeTimes {
  // Unix time as the trace says, else time from the begin of a replay.
  bool measured = false;
  // By node; empty for one that took no time and has no start.
  std::vector<TimeInterval> intervals;
};

// True when every node that took time says when it started, and any does.
bool HasStartTimes(const ExecutionGraph& graph);

// HasStartTimes must be true.
NodeTimes MeasuredTimes(const ExecutionGraph& graph);

NodeTimes ReplayedTimes(const GraphReplay& replay);

// Runs the graph as ASTRA-sim would, but with the nodes' own durations.
absl::StatusOr<GraphReplay> ReplayAsSimulator(const ExecutionGraph& graph,
                                              const CommunicationMatch& match);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_NODE_TIMES_H_
