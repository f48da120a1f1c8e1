// Which device runs which part of a program. A program is compiled for replicas x partitions; its
// device assignment gives each (replica, partition) a global device id, which need not be small:
//
//                 replica 0   replica 1
//   partition 0        0        2048          Device(1, 0) = 2048
//   partition 1     4096        6144          Device(0, 1) = 4096
#ifndef XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_
#define XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

class DeviceAssignment {
 public:
  // Decodes an xla.DeviceAssignmentProto within the file that begins at `origin`. InvalidArgument
  // when its counts do not fit its ids.
  static absl::StatusOr<DeviceAssignment> Decode(absl::string_view bytes, const char* origin);

  // `device_ids` holds replica 0, 1, ... of partition 0, then of partition 1, ...
  // REQUIRED: replica_count divides their number.
  DeviceAssignment(int64_t replica_count, std::vector<int64_t> device_ids)
      : replica_count_(replica_count),
        partition_count_(static_cast<int64_t>(device_ids.size()) / replica_count),
        device_ids_(std::move(device_ids)) {}

  // Both at least 1.
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

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_DEVICE_ASSIGNMENT_H_
