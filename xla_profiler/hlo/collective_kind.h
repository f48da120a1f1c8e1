// SPDX-License-Identifier: Apache-2.0
// The kinds of collectives, whatever wrote or runs them: programs, profiles, execution traces,
// networks and simulations all use these names. Chakra's files have an enum of their own on the
// wire (chakra_export/et/collective_type.h translates).
#ifndef XLA_PROFILER_HLO_COLLECTIVE_KIND_H_
#define XLA_PROFILER_HLO_COLLECTIVE_KIND_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  // A message of one rank to one other, as a network carries it. Programs and profiles show its two
  // ends, kSend and kRecv, or several messages at once, kCollectivePermute; never this.
  kPointToPoint,
  kRaggedAllToAll,
  kCollectiveBroadcast,
  kCollectiveReduce,
  kCollectivePermute,
  kSend,
  kRecv,
  // No opcodes of HLO: other frameworks have them.
  kCollectiveGather,
  kCollectiveScatter,
  kBarrier,
  // Communication of which a profile tells only that it took place.
  kUnknown,
};

// Returns e.g. "all-reduce"; of a message "p2p".
absl::string_view CollectiveKindName(CollectiveKind kind);

// True for kinds that communicate along source-target pairs, not within groups.
bool HasPairs(CollectiveKind kind);

// Returns the bytes that cross the bus for each byte of a rank's buffer, as nccl-tests count; of an
// all-gather for each byte of its share. 0 for kinds that they do not count.
double BusFactor(CollectiveKind kind, double ranks);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_COLLECTIVE_KIND_H_
