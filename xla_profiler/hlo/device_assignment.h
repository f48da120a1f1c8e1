// SPDX-License-Identifier: Apache-2.0
// Which device runs which part of a program. A program is compiled for replicas x partitions; its
// device assignment gives each (replica, partition) a global device id, which need not be small:
//
//                 replica 0   replica 1
//   partition 0        0        2048          Device(1, 0) = 2048
//   partition 1     4096        6144          Device(0, 1) = 4096
//
// Collectives name their participants by logical ids (replica_groups.h). What an id counts depends
// on the instruction, CollectiveGroupMode; which device that is, on the assignment.
#ifndef XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_
#define XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {

class DeviceAssignment {
 public:
  // InvalidArgument when the counts of the message do not fit its ids.
  static absl::StatusOr<DeviceAssignment> FromProto(const xla::DeviceAssignmentProto& proto);

  // `device_ids` holds replica 0, 1, ... of partition 0, then of partition 1, ...
  // REQUIRED: replica_count divides their number.
  DeviceAssignment(int64_t replica_count, std::vector<int64_t> device_ids)
      : replica_count_(replica_count),
        partition_count_(static_cast<int64_t>(device_ids.size()) / replica_count),
        device_ids_(std::move(device_ids)) {}

  // Both counts are at least 1.
  int64_t replica_count() const { return replica_count_; }
  int64_t partition_count() const { return partition_count_; }

  // REQUIRED: 0 <= replica < replica_count(), 0 <= partition < partition_count().
  int64_t Device(int64_t replica, int64_t partition) const {
    return device_ids_[partition * replica_count_ + replica];
  }

  // All of them, replica by replica within each partition.
  const std::vector<int64_t>& device_ids() const { return device_ids_; }

 private:
  int64_t replica_count_;
  int64_t partition_count_;
  std::vector<int64_t> device_ids_;
};

// What the logical ids of a collective count: XLA's CollectiveOpGroupMode.
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

#endif  // XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_
