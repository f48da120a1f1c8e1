// SPDX-License-Identifier: Apache-2.0
// Words for a simulation that cannot go on.
#ifndef ASTRA_BRIDGE_ENGINE_DEADLOCK_H_
#define ASTRA_BRIDGE_ENGINE_DEADLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/workload.h"

namespace meridian {

// A node that was issued and is not over.
struct WaitingNode {
  int32_t rank = 0;
  // Position among the nodes of its rank.
  uint32_t node = 0;
  // The ranks that have not done their part; the rank itself may be among them and is not meant.
  absl::Span<const int32_t> for_ranks;
  // More about it, e.g. "a send with this tag has 8 bytes, not 16"; may be empty.
  std::string note;
};

// Returns e.g. "deadlock at 5300 ns: rank 0 (run.0.et) waits in node 5 (all-reduce, group 1) for
// rank 1; rank 1 (run.1.et) waits in node 3 (receive from rank 0, tag 7, 64 bytes) for rank 0". It
// begins with a circle if there is one, and names a few of the others.
std::string DescribeDeadlock(const Workload& workload, const std::vector<WaitingNode>& waiting,
                             int64_t now_ns);

// Returns a circle among the numbers below `count`, if there is one: next(i) says which one i waits
// for, `count` when for none.
std::vector<size_t> FindCircle(size_t count, absl::FunctionRef<size_t(size_t)> next);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_DEADLOCK_H_
