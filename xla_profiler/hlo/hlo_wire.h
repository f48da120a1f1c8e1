// SPDX-License-Identifier: Apache-2.0
// Field numbers of XLA's HLO messages, and how their fields are read in place. Semantics are
// proto3's: the last of repeated singular fields counts, a field of an unexpected wire type is an
// unknown field. Texts and map entries are read with xplane_wire.h.
#ifndef XLA_PROFILER_HLO_HLO_WIRE_H_
#define XLA_PROFILER_HLO_HLO_WIRE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

struct HloProtoField {
  static constexpr uint32_t kModule = 1;
};
struct HloModuleField {
  static constexpr uint32_t kName = 1, kEntryComputationName = 2, kComputations = 3, kId = 5,
                            kEntryComputationId = 6, kSchedule = 7, kDeviceAssignment = 15;
};
struct HloScheduleField {
  static constexpr uint32_t kSequences = 1;
};
struct HloSequenceField {
  static constexpr uint32_t kInstructionIds = 1;
};
struct HloComputationField {
  static constexpr uint32_t kName = 1, kInstructions = 2, kId = 5, kRootId = 6;
};
struct HloInstructionField {
  static constexpr uint32_t kName = 1, kOpcode = 2, kShape = 3, kParameterNumber = 9,
                            kTupleIndex = 13, kChannelId = 26, kId = 35, kOperandIds = 36,
                            kControlPredecessorIds = 37, kCalledComputationIds = 38,
                            kIsHostTransfer = 47, kReplicaGroups = 49, kSourceTargetPairs = 52,
                            kFrontendAttributes = 68, kUseGlobalDeviceIds = 71, kDeviceList = 87,
                            kIotaDeviceList = 92, kMeshAxes = 93;
};
struct FrontendAttributesField {
  static constexpr uint32_t kMap = 1;
};
struct ReplicaGroupField {
  static constexpr uint32_t kReplicaIds = 1;
};
struct SourceTargetField {
  static constexpr uint32_t kSource = 1, kTarget = 2;
};
struct DeviceListField {
  // The second is reserved in newer XLA but present in real traces.
  static constexpr uint32_t kReplicaGroups = 1, kIota = 2;
};
struct IotaField {
  static constexpr uint32_t kNumGroups = 1, kGroupSize = 2, kReshapeDims = 3, kTransposePerm = 4;
};
struct MeshAxesField {
  static constexpr uint32_t kMesh = 1, kAxes = 2;
};
struct MeshField {
  static constexpr uint32_t kAxes = 1, kDeviceIds = 2, kIotaTransform = 3;
};
struct MeshAxisField {
  static constexpr uint32_t kSize = 2;
};
struct IotaTransformField {
  static constexpr uint32_t kReshapeDims = 1, kTransposePerm = 2;
};
struct AxisRefField {
  static constexpr uint32_t kMeshAxisIndex = 1, kSubAxis = 2;
};
struct SubAxisField {
  static constexpr uint32_t kPreSize = 1, kSize = 2;
};
struct DeviceAssignmentField {
  static constexpr uint32_t kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3;
};
struct ComputationDeviceField {
  static constexpr uint32_t kReplicaDeviceIds = 1;
};
struct ShapeField {
  static constexpr uint32_t kElementType = 2, kDimensions = 3, kTupleShapes = 4, kLayout = 5;
};
struct LayoutField {
  static constexpr uint32_t kElementSizeInBits = 7;
};

// How many levels may nest below a message of each kind (see kMaxWireDepth).
inline constexpr int kHloProtoDepth = kMaxWireDepth;
inline constexpr int kHloModuleDepth = kHloProtoDepth - 1;
inline constexpr int kHloComputationDepth = kHloModuleDepth - 1;
inline constexpr int kHloInstructionDepth = kHloComputationDepth - 1;

// Hands each field of a message to fn, which returns a status.
template <typename Fn>
absl::Status ForEachField(absl::string_view message, const char* origin, int depth, const Fn& fn) {
  WireReader reader(message, origin, depth);
  WireField field;
  while (reader.Next(&field)) RETURN_IF_ERROR(fn(field));
  return reader.status();
}

// Appends the elements of a repeated integer field in either of its encodings; a field of another
// wire type adds nothing.
inline absl::Status AppendIntegers(const WireField& field, const char* origin,
                                   std::vector<int64_t>* integers) {
  if (field.type != WireType::kVarint && field.type != WireType::kBytes) return absl::OkStatus();
  if (!ForEachRepeatedVarint(field, [&](int64_t value) { integers->push_back(value); })) {
    return WireError(field.bytes.data(), origin, "packed integers are malformed");
  }
  return absl::OkStatus();
}

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_WIRE_H_
