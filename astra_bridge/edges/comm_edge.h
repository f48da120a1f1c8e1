// SPDX-License-Identifier: Apache-2.0
// A comm edge: one communication of a job, that is what is moved, how much, among whom. Its time
// is what a NetworkTiming says (timing/network_timing.h).
#ifndef ASTRA_BRIDGE_EDGES_COMM_EDGE_H_
#define ASTRA_BRIDGE_EDGES_COMM_EDGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// What the job's library is said to use; a network of several dimensions has more than one way.
enum class AlgorithmHint : uint8_t {
  // What the system configuration says.
  kNone,
  // One ring through all participants.
  kRing,
  // Everybody sends to everybody at once.
  kDirect,
  // A double binary tree; all-reduce only.
  kTree,
  // Dimension by dimension.
  kHierarchical,
};

// Returns the name in lists of comm edges: "", ring, direct, tree, hierarchical.
absl::string_view AlgorithmHintName(AlgorithmHint hint);

struct CommEdge {
  // The same edge of the same job has the same id in every run.
  std::string id;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Bytes as in Chakra's comm_size. All-gather: what one rank puts in; else the whole buffer of a
  // rank.
  int64_t bytes = 0;
  // Ranks, which are the devices of the same numbers, in the order of the logical ring; of a
  // point-to-point edge the source, then the destination.
  std::vector<int32_t> participants;
  AlgorithmHint hint = AlgorithmHint::kNone;
  // Names the network that carries the edge; may be empty.
  std::string topology_key;
};

// Returns false for edges that move nothing: no bytes, or nobody to exchange them with. They last
// 0 s.
bool UsesNetwork(const CommEdge& edge);

// Returns all that the edge's time depends on, given network and engine, as text: its kind, bytes,
// hint and participants. Ids and the names of topologies are no part of it.
std::string CanonicalText(const CommEdge& edge);

// All-reduce, all-gather, reduce-scatter, all-to-all and messages, in the order of CollectiveKind:
// arrays of so many elements are indexed by it.
inline constexpr int kTimedKinds = 5;
static_assert(static_cast<int>(CollectiveKind::kPointToPoint) == kTimedKinds - 1);

// Returns the timed kind that a collective of a program or profile is: that of its name, or
// kPointToPoint for sends, receives and permutes. Nullopt for kinds that no network times.
std::optional<CollectiveKind> TimedKindOf(CollectiveKind kind);

// Returns the short name in lists of comm edges: AR, AG, RS, A2A, P2P.
absl::string_view TimedKindCode(CollectiveKind kind);

// Returns the timed kind with this TimedKindCode; nullopt for any other text.
std::optional<CollectiveKind> TimedKindFromCode(absl::string_view code);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_EDGES_COMM_EDGE_H_
