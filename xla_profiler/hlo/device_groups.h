// From the logical ids of a collective to devices. What an id means depends on the instruction
// (XLA's CollectiveOpGroupMode); which device that is, on the device assignment.
#ifndef XLA_PROFILER_HLO_DEVICE_GROUPS_H_
#define XLA_PROFILER_HLO_DEVICE_GROUPS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/device_assignment.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

enum class CollectiveGroupMode {
  // Ids are replicas; each partition communicates on its own.
  kCrossReplica,
  // Ids are partitions; each replica communicates on its own.
  kCrossPartition,
  // Ids are replicas; all partitions of a group's replicas communicate together.
  kCrossReplicaAndPartition,
  // Ids are replica * partition_count + partition.
  kFlattenedId,
};

// Returns e.g. "cross_replica".
absl::string_view CollectiveGroupModeName(CollectiveGroupMode mode);

// Returns the mode of an instruction; use_global_device_ids is nullopt for opcodes that do not have
// the attribute. InvalidArgument for global ids without a channel, which XLA refuses too.
absl::StatusOr<CollectiveGroupMode> GroupMode(bool has_channel_id,
                                              std::optional<bool> use_global_device_ids);

// Returns the groups of global device ids that communicate, in XLA's order; no groups stand for all
// participants of the mode. InvalidArgument names an id that the assignment does not have.
absl::StatusOr<IdGroups> ResolveGroups(const IdGroups& groups, CollectiveGroupMode mode,
                                       const DeviceAssignment& assignment);

// Returns the pairs of devices that communicate: of each partition in turn under kCrossReplica, of
// each replica in turn under kCrossPartition. InvalidArgument as above, for more pairs than ids,
// and for kCrossReplicaAndPartition, which has no meaning for pairs.
absl::StatusOr<std::vector<SourceTargetPair>> ResolvePairs(
    const std::vector<SourceTargetPair>& pairs, CollectiveGroupMode mode,
    const DeviceAssignment& assignment);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_DEVICE_GROUPS_H_
