#include "xla_profiler/hlo/device_assignment.h"

#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// What the ids of a mode count, and how often the groups repeat.
struct IdSpace {
  absl::string_view what;
  int64_t size;
  int64_t repetitions;
};

IdSpace IdSpaceOf(CollectiveGroupMode mode, const DeviceAssignment& assignment) {
  const int64_t replicas = assignment.replica_count();
  const int64_t partitions = assignment.partition_count();
  switch (mode) {
    case CollectiveGroupMode::kCrossReplica:
      return {"replicas", replicas, partitions};
    case CollectiveGroupMode::kCrossPartition:
      return {"partitions", partitions, replicas};
    case CollectiveGroupMode::kCrossReplicaAndPartition:
      return {"replicas", replicas, 1};
    case CollectiveGroupMode::kFlattenedId:
      return {"flattened ids", replicas * partitions, 1};
  }
  MERIDIAN_CHECK(false);
}

absl::Status CheckId(int64_t id, const IdSpace& space) {
  if (id >= 0 && id < space.size) return absl::OkStatus();
  return InvalidArgument("id ", id, " is not among the ", space.size, " ", space.what,
                         " of the device assignment");
}

// Appends the devices that an id stands for in one repetition.
void AppendDevices(int64_t id, int64_t repetition, CollectiveGroupMode mode,
                   const DeviceAssignment& assignment, std::vector<int64_t>* devices) {
  const int64_t partitions = assignment.partition_count();
  switch (mode) {
    case CollectiveGroupMode::kCrossReplica:
      devices->push_back(assignment.Device(id, repetition));
      break;
    case CollectiveGroupMode::kCrossPartition:
      devices->push_back(assignment.Device(repetition, id));
      break;
    case CollectiveGroupMode::kCrossReplicaAndPartition:
      for (int64_t partition = 0; partition < partitions; ++partition) {
        devices->push_back(assignment.Device(id, partition));
      }
      break;
    case CollectiveGroupMode::kFlattenedId:
      devices->push_back(assignment.Device(id / partitions, id % partitions));
      break;
  }
}

// One group of all participants.
IdGroups Everybody(const IdSpace& space) {
  std::vector<int64_t> all(space.size);
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

}  // namespace

absl::StatusOr<DeviceAssignment> DeviceAssignment::FromProto(
    const xla::DeviceAssignmentProto& proto) {
  const int64_t replicas = proto.replica_count(), partitions = proto.computation_count();
  std::vector<int64_t> device_ids;
  bool fits = replicas > 0 && partitions > 0 && proto.computation_devices_size() == partitions;
  for (const auto& partition : proto.computation_devices()) {
    const auto& ids = partition.replica_device_ids();
    device_ids.insert(device_ids.end(), ids.begin(), ids.end());
    fits &= ids.size() == replicas;
  }
  if (!fits) {
    return InvalidArgument("the device assignment of ", replicas, " replicas and ", partitions,
                           " partitions lists ", device_ids.size(), " devices in ",
                           proto.computation_devices_size(), " partitions");
  }
  return DeviceAssignment(replicas, std::move(device_ids));
}

absl::StatusOr<CollectiveGroupMode> GroupMode(bool has_channel_id,
                                              std::optional<bool> use_global_device_ids) {
  if (!has_channel_id) {
    if (!use_global_device_ids.value_or(false)) return CollectiveGroupMode::kCrossReplica;
    return InvalidArgument("use_global_device_ids without channel_id");
  }
  if (!use_global_device_ids.has_value()) return CollectiveGroupMode::kCrossPartition;
  return *use_global_device_ids ? CollectiveGroupMode::kFlattenedId
                                : CollectiveGroupMode::kCrossReplicaAndPartition;
}

absl::StatusOr<IdGroups> ResolveGroups(const IdGroups& groups, CollectiveGroupMode mode,
                                       const DeviceAssignment& assignment) {
  const IdSpace space = IdSpaceOf(mode, assignment);
  if (groups.empty()) return ResolveGroups(Everybody(space), mode, assignment);
  for (int64_t id : groups.ids()) RETURN_IF_ERROR(CheckId(id, space));
  IdGroups resolved;
  std::vector<int64_t> devices;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (int64_t repetition = 0; repetition < space.repetitions; ++repetition) {
      devices.clear();
      for (int64_t id : groups[i]) AppendDevices(id, repetition, mode, assignment, &devices);
      resolved.Add(devices);
    }
  }
  return resolved;
}

absl::StatusOr<std::vector<SourceTargetPair>> ResolvePairs(
    const std::vector<SourceTargetPair>& pairs, CollectiveGroupMode mode,
    const DeviceAssignment& assignment) {
  if (mode == CollectiveGroupMode::kCrossReplicaAndPartition) {
    return InvalidArgument("source-target pairs cross replicas and partitions");
  }
  const IdSpace space = IdSpaceOf(mode, assignment);
  // Nobody sends twice, so this also bounds what a hostile file can cost.
  if (pairs.size() > static_cast<size_t>(space.size)) {
    return InvalidArgument(pairs.size(), " source-target pairs among ", space.size, " ",
                           space.what);
  }
  for (const SourceTargetPair& pair : pairs) {
    RETURN_IF_ERROR(CheckId(pair.source, space));
    RETURN_IF_ERROR(CheckId(pair.target, space));
  }
  std::vector<SourceTargetPair> resolved;
  std::vector<int64_t> devices;
  for (int64_t repetition = 0; repetition < space.repetitions; ++repetition) {
    for (const SourceTargetPair& pair : pairs) {
      devices.clear();
      AppendDevices(pair.source, repetition, mode, assignment, &devices);
      AppendDevices(pair.target, repetition, mode, assignment, &devices);
      resolved.push_back({devices[0], devices[1]});
    }
  }
  return resolved;
}

}  // namespace meridian
