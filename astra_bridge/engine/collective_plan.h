// SPDX-License-Identifier: Apache-2.0
// How one collective is carried out: split into chunks, each of which goes through phases.
//
//   all-reduce of 64 MiB, 4 chunks of 16 MiB, two dimensions of 8 and 4 ranks, localBWAware
//   phase 0   reduce-scatter in dimension 0   16 MiB -> 2 MiB
//   phase 1   all-reduce in dimension 1        2 MiB
//   phase 2   all-gather in dimension 0        2 MiB -> 16 MiB
#ifndef ASTRA_BRIDGE_ENGINE_COLLECTIVE_PLAN_H_
#define ASTRA_BRIDGE_ENGINE_COLLECTIVE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/topology.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// One algorithm that the members of logical rings carry out, each ring on its own. Positions in a
// ring are 0 .. size - 1.
struct CollectivePhase {
  CollectiveKind op = CollectiveKind::kAllReduce;
  CollectiveAlgorithm algorithm;
  // Dimension of the network whose queue chunks wait in for this phase.
  int32_t dimension = 0;

  // Members of a ring.
  int32_t size = 0;
  // Ranks of neighbours differ by this much; 0: the ring is the group, in its order.
  int32_t stride = 0;
  // +1 or -1: which way the first message goes.
  int32_t direction = 1;
  int64_t endpoint_delay_ns = 0;

  // Bytes that a member holds before the phase.
  int64_t data_bytes = 0;

  // How many messages each member sends, and how many at once.
  int32_t messages = 0;
  int32_t parallel = 1;
  // Packets are prepared in turns of `parallel` plain ones and `reduced_run` that may need a
  // reduction first.
  int64_t reduced_run = 0;
  // Bytes of every message; with halving-doubling, of the first.
  int64_t message_bytes = 0;

  // Double binary tree: the one with the highest rank as its root for even, the one with the lowest
  // for odd numbers. Chunk c takes tree_offset + c * trees_per_chunk.
  int32_t tree_offset = 0;
  int32_t trees_per_chunk = 0;
};

struct CollectivePlan {
  int32_t chunks = 0;
  // Bytes of every chunk, also of a last one that is not full.
  int64_t chunk_bytes = 0;
  std::vector<CollectivePhase> phases;
  // No member is done before all have joined. False when the phases leave dimensions out: then the
  // rows of ranks along the others run each on its own.
  bool ties_all_members = false;
};

// A collective that is to be planned.
struct CollectiveRequest {
  CollectiveKind op = CollectiveKind::kAllReduce;
  int64_t bytes = 0;
  // 0: all ranks, along the dimensions of the network. Else the size of the group.
  int32_t group_size = 0;
  // Algorithms, one for each dimension that takes part.
  absl::Span<const CollectiveAlgorithm> algorithms;
  // Dimensions that take part, as in WorkloadNode.
  uint64_t involved_dimensions = ~uint64_t{0};
};

// Returns InvalidArgument, naming the key of the system configuration where it is at fault, for
// what AstraSim does not finish: an algorithm that does not fit the number of ranks, an all-gather
// of fewer bytes than chunks, no dimension at all.
absl::StatusOr<CollectivePlan> PlanCollective(const CollectiveRequest& request,
                                              const Topology& topology, const SystemConfig& system);

// Returns how long it takes to reduce that many bytes, in whole ns: two reads and a write.
int64_t ReductionNs(int64_t bytes, double local_memory_bandwidth);

// The positions of those that a member of a double binary tree exchanges messages with; -1: nobody.
struct TreePlace {
  int32_t parent = -1;
  int32_t left_child = -1;
  int32_t right_child = -1;
};

// Returns the place of a position in a tree of `size` members, a power of two. Positions are in
// order from left to right; the root, the highest or the lowest position, has one child only.
TreePlace PlaceInTree(int32_t position, int32_t size, bool root_is_highest);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_COLLECTIVE_PLAN_H_
