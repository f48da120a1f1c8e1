// SPDX-License-Identifier: Apache-2.0
// What a replay measured, as Chakra traces: the workload that was replayed, with the times of one
// of its repeats.
#ifndef CLUSTER_REPLAY_MEASURED_TRACE_H_
#define CLUSTER_REPLAY_MEASURED_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/rank_replayer.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// What a roofline needs, and the graph does not hold; 0 where a node does not say.
struct NodeCost {
  int64_t operations = 0;
  int64_t bytes = 0;
};

// Writes PREFIX.<rank>.et and PREFIX.comm_groups.json. Times and costs are by node. Communication
// lasts from when the last of its ranks began, which takes one clock for all ranks; how long it
// lasted with waiting is the attribute raw_duration_ns. The graph's nodes get these durations.
absl::StatusOr<WrittenWorkload> WriteMeasuredTrace(
    FileSystem& file_system, const CommunicationMatch& match, absl::Span<const NodeTimes> times,
    absl::Span<const NodeCost> costs, const std::string& prefix, ExecutionGraph* graph);

}  // namespace meridian

#endif  // CLUSTER_REPLAY_MEASURED_TRACE_H_
