#include "xla_profiler/hlo/device_assignment.h"

#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_wire.h"

namespace meridian {
namespace {

// Appends the devices of one partition.
absl::Status AppendPartition(absl::string_view bytes, const char* origin,
                             std::vector<int64_t>* device_ids) {
  return ForEachField(bytes, origin, kHloModuleDepth - 2, [&](const WireField& field) {
    if (field.number != ComputationDeviceField::kReplicaDeviceIds) return absl::OkStatus();
    return AppendIntegers(field, origin, device_ids);
  });
}

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
  return absl::InvalidArgumentError(absl::StrCat("id ", id, " is not among the ", space.size, " ",
                                                 space.what, " of the device assignment"));
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

absl::StatusOr<DeviceAssignment> DeviceAssignment::Decode(absl::string_view bytes,
                                                          const char* origin) {
  int64_t replicas = 0, partitions = 0;
  std::vector<int64_t> device_ids;
  std::vector<size_t> row_sizes;
  WireReader reader(bytes, origin, kHloModuleDepth - 1);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(DeviceAssignmentField::kReplicaCount)) {
      replicas = static_cast<int32_t>(field.scalar);
    } else if (field.IsVarint(DeviceAssignmentField::kComputationCount)) {
      partitions = static_cast<int32_t>(field.scalar);
    } else if (field.IsBytes(DeviceAssignmentField::kComputationDevices)) {
      const size_t before = device_ids.size();
      RETURN_IF_ERROR(AppendPartition(field.bytes, origin, &device_ids));
      row_sizes.push_back(device_ids.size() - before);
    }
  }
  RETURN_IF_ERROR(reader.status());
  const int64_t rows = static_cast<int64_t>(row_sizes.size());
  bool fits = replicas > 0 && partitions > 0 && rows == partitions;
  for (size_t size : row_sizes) fits &= static_cast<int64_t>(size) == replicas;
  if (!fits) {
    return WireError(
        bytes.data(), origin,
        absl::StrCat("the device assignment of ", replicas, " replicas and ", partitions,
                     " partitions lists ", device_ids.size(), " devices in ", rows, " partitions"));
  }
  return DeviceAssignment(replicas, std::move(device_ids));
}

absl::StatusOr<CollectiveGroupMode> GroupMode(bool has_channel_id,
                                              std::optional<bool> use_global_device_ids) {
  if (!has_channel_id) {
    if (!use_global_device_ids.value_or(false)) return CollectiveGroupMode::kCrossReplica;
    return absl::InvalidArgumentError("use_global_device_ids without channel_id");
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
    return absl::InvalidArgumentError("source-target pairs cross replicas and partitions");
  }
  const IdSpace space = IdSpaceOf(mode, assignment);
  // Nobody sends twice, so this also bounds what a hostile file can cost.
  if (pairs.size() > static_cast<size_t>(space.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(pairs.size(), " source-target pairs among ", space.size, " ", space.what));
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
