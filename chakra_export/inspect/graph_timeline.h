// SPDX-License-Identifier: Apache-2.0
// A graph as a Chrome trace: a process per rank, a thread per stream and host thread.
#ifndef CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_
#define CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_

#include "absl/status/status.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/inspect/node_times.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {

// Times in the trace count from the earliest start. Receives have threads of their own, since they
// overlap with what their stream does. OutOfRange for times over 106 days apart.
absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_GRAPH_TIMELINE_H_
