// SPDX-License-Identifier: Apache-2.0
// The collectives of an HLO module: what communicates, how many bytes, among whom.
//
// A collective is one instruction, or a pair, or wrapped into a computation of its own; a profile
// may name it by any of these:
//
//   all-reduce.1                                   synchronous
//   all-reduce-start.1 <- all-reduce-done.1        a pair
//   async-start.1 <- async-update.1 <- async-done.1
//       └ calls wrapped_reduce_scatter: reduce-scatter.1
//
// Opcodes decide, never names: JAX calls an all-reduce "psum_invariant.7".
#ifndef XLA_PROFILER_HLO_HLO_COLLECTIVE_H_
#define XLA_PROFILER_HLO_HLO_COLLECTIVE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/hlo/device_assignment.h"
#include "xla_profiler/hlo/hlo_module.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

// Who takes part. Many collectives of a module share one.
struct CollectiveParticipants {
  CollectiveGroupMode mode = CollectiveGroupMode::kCrossReplica;
  // As the module says it, in the ids of the mode; no groups mean everybody.
  IdGroups logical_groups;
  std::vector<SourceTargetPair> logical_pairs;
  // The same in global device ids; here everybody is spelled out.
  IdGroups device_groups;
  std::vector<SourceTargetPair> device_pairs;
  // The module has no device assignment: the device ids are the logical ids.
  bool devices_are_logical_ids = false;
  // Not OK when the groups could not be told: they are then empty.
  absl::Status status;
};

struct HloCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The one that holds groups and channel: the synchronous instruction, the start of a pair, or the
  // instruction within a wrapped computation.
  const HloInstruction* instruction = nullptr;
  // Of a pair or a wrapper, else null; `done` is also null when it is not found.
  const HloInstruction* start = nullptr;
  const HloInstruction* done = nullptr;
  // What one participant puts in and gets out, tuples summed.
  int64_t operand_bytes = 0;
  int64_t output_bytes = 0;
  // Never null.
  const CollectiveParticipants* participants = nullptr;
  // Not OK when bytes or participants could not be told: those are then 0 or empty. Names the
  // instruction.
  absl::Status status;
};

// Returns the shape of what a participant gets out, whatever a start's own shape holds besides.
const xla::ShapeProto& OutputShape(const HloCollective& collective);

class HloCollectives {
 public:
  // Finds the collectives of the module, which must outlive them. Transfers to and from the host
  // are none.
  explicit HloCollectives(const HloModule& module);

  HloCollectives(HloCollectives&&) = default;
  HloCollectives& operator=(HloCollectives&&) = default;

  // In file order.
  const std::vector<HloCollective>& all() const { return collectives_; }

  // Returns the collective that an instruction is, starts, updates, wraps or ends, or nullptr. When
  // a wrapped computation has several, its start and done lead to the root or else the first.
  const HloCollective* Find(absl::string_view instruction_name) const;

 private:
  friend class CollectiveFinder;

  const HloModule* module_;
  std::vector<HloCollective> collectives_;
  // Elements keep their address.
  std::deque<CollectiveParticipants> participants_;
  // Positions in collectives_.
  absl::flat_hash_map<const HloInstruction*, size_t> by_instruction_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_COLLECTIVE_H_
