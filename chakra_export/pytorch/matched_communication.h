// SPDX-License-Identifier: Apache-2.0
// What each communication kernel of a run is: its type, bytes, participants, and the kernels of the
// other ranks that are the same execution. Each rank's collectives are read first; then those of
// all ranks are matched.
#ifndef CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_
#define CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

// The collectives of one rank that its profile describes.
struct RankCollectives {
  ProfileCollectives profile;
  // The node of the first kernel of each event of the profile; kNoTimelineNode for none.
  std::vector<TimelineIndex> nodes;
  // The nodes of communication kernels that are in no event.
  std::vector<TimelineIndex> undescribed;
};

// Profiles describe their communication kernels from PyTorch 2.2 on.
RankCollectives ReadRankCollectives(const TraceJsonTable& trace, absl::string_view text,
                                    absl::string_view name, const RankTimeline& timeline);

// What one communication kernel moves.
struct NodeCommunication {
  // COMM_COLL_NODE, COMM_SEND_NODE or COMM_RECV_NODE.
  ChakraProtoMsg::NodeType type{};
  ChakraProtoMsg::CollectiveCommType collective{};
  // The collective that a simulator runs for it: the same, or the nearest that it has; absent when
  // it has none (a barrier).
  std::optional<ChakraProtoMsg::CollectiveCommType> simulated;
  // Bytes, counted as Chakra's comm_size.
  int64_t bytes = 0;
  // The ranks of a collective in PyTorch's order, and PyTorch's name of their group.
  std::vector<int64_t> ranks;
  std::string process_group;
  // The ranks of a message.
  int64_t source = -1;
  int64_t target = -1;
  // Number of the execution, the same on all ranks; they count up in the order in which executions
  // could begin.
  uint32_t instance = 0;
  // How long it waited until the last rank had come, as the clocks say, and how long it lasted
  // without that.
  int64_t waited_ps = 0;
  int64_t transfer_ps = 0;
};

struct RankCommunication {
  int64_t rank = 0;
  // Communication kernels that are understood and matched, with what each does; a kernel of a batch
  // may do several things at once.
  absl::flat_hash_map<TimelineIndex, std::vector<NodeCommunication>> nodes;
  // The other communication kernels, with the reason.
  absl::flat_hash_map<TimelineIndex, std::string> unmatched;
  // How many parts of batches are left out though the others are matched, by reason.
  std::map<std::string, int64_t> lost_parts;
};

struct MatchedCommunication {
  // What each rank communicates, in the order of the traces.
  std::vector<RankCommunication> ranks;
  int64_t world_size = 0;
  bool clocks_agree = true;
  // How ranks and executions were told apart, when not in the best way.
  std::vector<std::string> notes;
};

// Executions are matched by sequence number, step or order (run_resolution.h). Of a group only the
// ranks at hand are looked for. InvalidArgument for two traces of one rank and for process groups
// that disagree, FailedPrecondition for clocks that do; where violations are allowed, these are
// taken, and durations are the kernels' own.
absl::StatusOr<MatchedCommunication> MatchCommunication(std::vector<RankCollectives> collectives,
                                                        bool allow_violations = false);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_
