// What each communication kernel of a run is: its type, bytes, participants, and the kernels of the
// other ranks that are the same execution.
#ifndef CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_
#define CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "chakra_export/pytorch/rank_collectives.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

struct NodeCommunication {
  // COMM_COLL_NODE, COMM_SEND_NODE or COMM_RECV_NODE.
  ChakraProtoMsg::NodeType type = ChakraProtoMsg::COMM_COLL_NODE;
  ChakraProtoMsg::CollectiveCommType collective = ChakraProtoMsg::ALL_REDUCE;
  // As Chakra's comm_size.
  int64_t bytes = 0;
  // Of a collective, as PyTorch orders them, and what PyTorch calls them.
  std::vector<int64_t> ranks;
  std::string process_group;
  // Of a message.
  int64_t source = -1;
  int64_t target = -1;
  // The same on all ranks; in the order in which instances could begin.
  uint32_t instance = 0;
  // Without the time in which it waited for other ranks.
  int64_t transfer_ps = 0;
};

struct RankCommunication {
  int64_t rank = 0;
  // Communication kernels that are understood and matched.
  absl::flat_hash_map<TimelineIndex, NodeCommunication> nodes;
  // The others, with the reason.
  absl::flat_hash_map<TimelineIndex, std::string> unmatched;
};

struct MatchedCommunication {
  // In the order of the traces.
  std::vector<RankCommunication> ranks;
  int64_t world_size = 0;
  bool clocks_agree = true;
  // How ranks and executions were told, when not in the best way.
  std::vector<std::string> notes;
};

struct MatchOptions {
  // Take clocks that contradict each other; durations are then the kernels' own.
  bool allow_violations = false;
};

// Executions are matched by sequence number, step or order (run_resolution.h). Of a group only the
// ranks at hand are looked for. InvalidArgument for two traces of one rank and for process groups
// that disagree, FailedPrecondition for clocks that do.
absl::StatusOr<MatchedCommunication> MatchCommunication(std::vector<RankCollectives> collectives,
                                                        const MatchOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_MATCHED_COMMUNICATION_H_
