// SPDX-License-Identifier: Apache-2.0
// Who waits for whom when a replay stands still. Every rank tells rank 0 now and then how it is;
// when all of them have been stuck for long enough, or one no longer answers, rank 0 explains it.
#ifndef CLUSTER_REPLAY_STALL_H_
#define CLUSTER_REPLAY_STALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"

namespace meridian {

struct RankState {
  enum class Kind : uint8_t {
    // Nothing was heard of the rank for a while.
    kSilent,
    // It computes, or something of it was issued or has finished lately.
    kMoving,
    kStuck,
  };
  Kind kind = Kind::kSilent;
  // Of a rank that is stuck, by position of the node among those of the rank.
  std::vector<bool> issued;
  std::vector<bool> finished;
};

// The state as bytes and back; bytes that are none come back as kMoving.
std::string EncodeState(const RankState& state);
RankState DecodeState(absl::string_view bytes);

// Returns e.g. "rank 0 node 4 (sum) waits for rank 1 node 7 (sum), not issued there; ...". The
// states are those of the ranks from 0 on, whose nodes lie one behind the other in the graph.
std::string ExplainStall(const ExecutionGraph& graph, const CommunicationMatch& match,
                         absl::Span<const RankState> states);

}  // namespace meridian

#endif  // CLUSTER_REPLAY_STALL_H_
