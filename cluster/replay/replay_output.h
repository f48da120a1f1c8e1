// SPDX-License-Identifier: Apache-2.0
// What a replay measured, as Chakra traces and as the profile of one rank in the form that XLA
// writes on processors:
//
//   /host:metadata     module chakra_replay with its HLO, an instruction for each node
//   /host:CPU          a line of steps (step_num), and of each thread or stream its nodes (hlo_op,
//                      device_ordinal = rank, run_id = repeat)
//   Task Environment   start and stop
//
// All communication of the workload is in every rank's module, so that ranks run one program; a
// message is a permute of one pair. HLO has no gather, scatter and barrier: they are written as the
// reduce, broadcast and all-reduce (of nothing) that wait for the same ranks.
#ifndef CLUSTER_REPLAY_REPLAY_OUTPUT_H_
#define CLUSTER_REPLAY_REPLAY_OUTPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/rank_replayer.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Returns the serialized XSpace of the rank. There is at least one step.
std::string ReplayProfile(const ExecutionGraph& graph, const CommunicationMatch& match,
                          int64_t rank, const std::string& hostname,
                          absl::Span<const ReplayedStep> steps);

// What a roofline needs of a node, and the graph does not hold; 0 where the node does not say.
struct NodeCost {
  int64_t operations = 0;
  int64_t bytes = 0;
};

// Writes the workload that was replayed with the times of one of its repeats, as Chakra traces:
// PREFIX.<rank>.et and PREFIX.comm_groups.json. Times and costs are by node. Communication
// lasts from when the last of its ranks began, which takes one clock for all ranks; how long it
// lasted with waiting is the attribute raw_duration_ns. The graph's nodes get these durations.
absl::Status WriteMeasuredTrace(FileSystem& file_system, const CommunicationMatch& match,
                                absl::Span<const ReplayedTimes> times,
                                absl::Span<const NodeCost> costs, const std::string& prefix,
                                ExecutionGraph* graph);

}  // namespace meridian

#endif  // CLUSTER_REPLAY_REPLAY_OUTPUT_H_
