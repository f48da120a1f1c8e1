#include "astra_bridge/engine/transfer_log.h"

#include <algorithm>

namespace meridian {

size_t TransferLog::Begin(int64_t now_ns, size_t part_count, uint64_t odd_trees) {
  Transfer& transfer = transfers_.emplace_back();
  transfer.begin_ns = transfer.end_ns = now_ns;
  transfer.first_part = parts_.size();
  transfer.part_count = part_count;
  transfer.odd_trees = odd_trees;
  parts_.resize(parts_.size() + part_count);
  return transfers_.size() - 1;
}

void TransferLog::EndPart(size_t number, size_t position, const TransferPart& part) {
  Transfer& transfer = transfers_[number];
  transfer.end_ns = std::max(transfer.end_ns, part.end_ns);
  parts_[transfer.first_part + position] = part;
}

}  // namespace meridian
