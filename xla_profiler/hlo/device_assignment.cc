#include "xla_profiler/hlo/device_assignment.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_wire.h"

namespace meridian {
namespace {

// Appends the devices of one partition.
absl::Status AppendPartition(absl::string_view bytes, const char* origin,
                             std::vector<int64_t>* device_ids) {
  WireReader reader(bytes, origin, kHloModuleDepth - 2);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == ComputationDeviceField::kReplicaDeviceIds) {
      RETURN_IF_ERROR(AppendIntegers(field, origin, device_ids));
    }
  }
  return reader.status();
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

}  // namespace meridian
