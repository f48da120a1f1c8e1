// SPDX-License-Identifier: Apache-2.0
// What processes of one run tell each other about a node (run_processes.h).
#ifndef TRACE_ALIGNMENT_RUN_NODE_BYTES_H_
#define TRACE_ALIGNMENT_RUN_NODE_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "trace_alignment/combine/run_alignment.h"
#include "xla_profiler/base/wire/packed_bytes.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/hlo/replica_groups.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {

void Pack(PackedBytes& bytes, SessionInfo& session);
void Pack(PackedBytes& bytes, SnapshotPairs& snapshots);
void Pack(PackedBytes& bytes, AlignedNode& node);

// Packs and unpacks the collectives of one profile after the other. Every profile lists the ranks of
// the whole run, and groups of them: what many profiles say alike is kept once, else a run's memory
// would grow with the square of its nodes.
class CollectivesPacker {
 public:
  // Counts of what could not be resolved are left out. Devices that a program is assigned to are
  // left out of a profile that was unpacked if the one before it listed the same: their union over
  // all profiles is what counts.
  void Pack(PackedBytes& bytes, ProfileCollectives& profile);

 private:
  void PackGroups(PackedBytes& bytes, std::vector<CollectiveOp>& ops);

  using GroupLists = std::vector<std::vector<int64_t>>;

  // Groups that were unpacked.
  absl::flat_hash_map<GroupLists, IdGroups> known_groups_;
  // Devices of the profile that was unpacked last.
  std::vector<int64_t> last_devices_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_NODE_BYTES_H_
