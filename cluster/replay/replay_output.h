// SPDX-License-Identifier: Apache-2.0
// What a replay measured, as the profile of one rank in the form that XLA writes on processors:
//
//   /host:metadata     module chakra_replay with its HLO, an instruction for each node
//   /host:CPU          a line of steps (step_num), and of each thread or stream its nodes (hlo_op,
//                      device_ordinal = rank, run_id = repeat)
//   Task Environment   start and stop
//
// All communication of the workload is in every rank's module, so that ranks run one program; a
// message is a permute of one pair. HLO has no gather, scatter and barrier: they are written as the
// reduce, broadcast and all-reduce (of nothing) that wait for the same ranks.
#ifndef CLUSTER_REPLAY_REPLAY_PROFILE_H_
#define CLUSTER_REPLAY_REPLAY_PROFILE_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "cluster/replay/rank_replayer.h"

namespace meridian {

// Returns the serialized XSpace. There is at least one step.
std::string ReplayProfile(const ExecutionGraph& graph, const CommunicationMatch& match,
                          int64_t rank, const std::string& hostname,
                          absl::Span<const ReplayedStep> steps);

}  // namespace meridian

#endif  // CLUSTER_REPLAY_REPLAY_PROFILE_H_
