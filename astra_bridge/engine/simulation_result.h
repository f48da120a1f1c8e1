// SPDX-License-Identifier: Apache-2.0
// What a simulation found.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "chakra_export/graph/rank_activity.h"

namespace meridian {

struct NodeTime {
  int32_t rank = 0;
  // Id of the workload's node.
  uint64_t id = 0;
  int64_t issue_ns = 0;
  int64_t finish_ns = 0;
};

// A member's part of a collective, or the one part of a message: its sender's.
struct TransferPart {
  int32_t rank = 0;
  // Position of the node that issued it among the nodes of its rank.
  uint32_t node = 0;
  int64_t end_ns = 0;
};

struct Transfer {
  int64_t begin_ns = 0;
  // When the last of its parts ends.
  int64_t end_ns = 0;
  // Where its parts are in the log, in the order of the group's members.
  size_t first_part = 0;
  size_t part_count = 0;
  // Bit d is set when the first double binary tree of a collective in dimension d is an odd one
  // (CollectivePhase). Not set where it has no such tree.
  uint64_t odd_trees = 0;
};

// How transfers went in a run: collectives, and messages of sends.
//
//   rank 0   join |--- early ---|============|             part 0 ends
//   rank 1                 join |===============|          part 1 ends
//                          begin                ^ end
//
// A collective is under way from when its last member joins until it is over for all, a message
// from when it is sent until it arrives. Collectives that do not tie all their members together
// (CollectivePlan) have no such begin, since some members may be done before others join: they are
// only counted.
class TransferLog {
 public:
  // Notes the begin of a transfer and returns its number. Times never go back.
  size_t Begin(int64_t now_ns, size_t part_count, uint64_t odd_trees = 0) {
    transfers_.push_back({now_ns, now_ns, parts_.size(), part_count, odd_trees});
    parts_.resize(parts_.size() + part_count);
    return transfers_.size() - 1;
  }

  // Notes the end of the part at that position in the transfer of that number.
  void EndPart(size_t number, size_t position, const TransferPart& part) {
    Transfer& transfer = transfers_[number];
    transfer.end_ns = std::max(transfer.end_ns, part.end_ns);
    parts_[transfer.first_part + position] = part;
  }

  void CountUntied() { ++untied_collectives_; }

  // Returns the transfers in the order of their begins.
  absl::Span<const Transfer> transfers() const { return transfers_; }
  absl::Span<const TransferPart> parts(const Transfer& transfer) const {
    return absl::MakeSpan(parts_).subspan(transfer.first_part, transfer.part_count);
  }
  // Returns how many collectives are not among the transfers.
  int64_t untied_collectives() const { return untied_collectives_; }

 private:
  std::vector<Transfer> transfers_;
  std::vector<TransferPart> parts_;
  int64_t untied_collectives_ = 0;
};

struct SimulationResult {
  // When each rank is done, by rank.
  std::vector<int64_t> finish_ns;
  // What each did until then, by rank. Empty when the engine does not tell.
  std::vector<RankActivity> activity;
  // Times of all nodes by rank, and within a rank in the order of its nodes.
  std::vector<NodeTime> nodes;
  // Collectives that tie all their members together, and messages of sends; no broadcasts.
  TransferLog transfers;

  // Returns when the last rank is done.
  int64_t makespan_ns() const { return finish_ns.empty() ? 0 : *absl::c_max_element(finish_ns); }
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATION_RESULT_H_
