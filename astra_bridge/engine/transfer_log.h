// How transfers went in a run: collectives, and messages of sends.
//
//   rank 0   join |--- early ---|============|             part 0 ends
//   rank 1                 join |===============|          part 1 ends
//                          begin                ^ end
//
// A collective is under way from when its last member joins until it is over for all, a message
// from when it is sent until it arrives. Collectives that do not tie all their members together
// (CollectivePlan) have no such begin, since some members may be done before others join: they are
// counted only.
#ifndef ASTRA_BRIDGE_ENGINE_TRANSFER_LOG_H_
#define ASTRA_BRIDGE_ENGINE_TRANSFER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace meridian {

// A member's part of a collective, or the one part of a message: its sender's.
struct TransferPart {
  int32_t rank = 0;
  // Position among the nodes of its rank.
  uint32_t node = 0;
  int64_t end_ns = 0;
};

struct Transfer {
  int64_t begin_ns = 0;
  // When its last part ends.
  int64_t end_ns = 0;
  // Where its parts are in the log, in the order of the group's members.
  size_t first_part = 0;
  size_t part_count = 0;
  // Of a collective, bit d: its first double binary tree in dimension d was an odd one
  // (CollectivePhase). Not set where it has none.
  uint64_t odd_trees = 0;
};

class TransferLog {
 public:
  // Notes the begin of a transfer and returns its number. Times never go back.
  size_t Begin(int64_t now_ns, size_t part_count, uint64_t odd_trees = 0);
  // Notes the end of one of its parts.
  void EndPart(size_t transfer, size_t position, const TransferPart& part);
  void CountUntied() { ++untied_collectives_; }

  // In the order of their begins.
  absl::Span<const Transfer> transfers() const { return transfers_; }
  absl::Span<const TransferPart> parts(const Transfer& transfer) const {
    return absl::MakeSpan(parts_).subspan(transfer.first_part, transfer.part_count);
  }
  // How many collectives are not among the transfers.
  int64_t untied_collectives() const { return untied_collectives_; }

 private:
  std::vector<Transfer> transfers_;
  std::vector<TransferPart> parts_;
  int64_t untied_collectives_ = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_TRANSFER_LOG_H_
