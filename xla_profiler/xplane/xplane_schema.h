// SPDX-License-Identifier: Apache-2.0
// The names that the XLA profiler gives to planes, lines and stats.
#ifndef XLA_PROFILER_XPLANE_XPLANE_SCHEMA_H_
#define XLA_PROFILER_XPLANE_XPLANE_SCHEMA_H_

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Planes.
inline constexpr absl::string_view kHostThreadsPlaneName = "/host:CPU";
inline constexpr absl::string_view kMetadataPlaneName = "/host:metadata";
inline constexpr absl::string_view kSnapshotsPlaneName = "/host:snapshots";
inline constexpr absl::string_view kTaskEnvPlaneName = "Task Environment";
inline constexpr absl::string_view kDevicePlanePrefix = "/device:";
inline constexpr absl::string_view kGpuPlanePrefix = "/device:GPU:";
inline constexpr absl::string_view kTpuPlanePrefix = "/device:TPU:";

inline bool IsDevicePlane(absl::string_view name) {
  return absl::StartsWith(name, kDevicePlanePrefix);
}

// Lines.
inline constexpr absl::string_view kApiLinePrefix = "Host Threads/";
inline constexpr absl::string_view kStreamLinePrefix = "Stream #";
inline constexpr absl::string_view kXlaModulesLineName = "XLA Modules";
inline constexpr absl::string_view kXlaOpsLineName = "XLA Ops";
inline constexpr absl::string_view kAsyncXlaOpsLineName = "Async XLA Ops";
inline constexpr absl::string_view kStepsLineName = "Steps";
// Their events are readings of counters: the name is the counter's, a stat the value.
inline constexpr absl::string_view kCounterLineName = "_counters_";
inline constexpr absl::string_view kCounterLinePrefix = "counters_";

// The stats that this project reads or writes. A stat's name decides its type; its value may come
// as a signed or unsigned number, a string or a reference, whatever the type.
enum class StatType {
  // Which execution, and what launched it.
  kCorrelationId,
  kRunId,
  kStepNum,
  kDeviceOrdinal,
  kReplica,
  kPartition,
  kRank,
  kStream,
  kCudaGraphId,
  // Which instruction.
  kHloOp,
  kHloModule,
  kHloProto,
  kProgramId,
  kReplicaGroups,
  kShape,
  // What a kernel or copy was, and Kineto's `cat` of an event.
  kMemcpyDetails,
  kMemsetDetails,
  kKinetoCategory,
  // The device.
  kCoreDetails,
  // The session.
  kProfileStartTime,
  kProfileStopTime,
  // Clock snapshots.
  kRocmNs,
  // A message between slices of TPUs.
  kDcnLabel,
  kDcnSourceSliceId,
  kDcnSourceDeviceId,
  kDcnDestinationSliceId,
  kDcnDestinationDeviceId,
  kDcnChunk,
  kDcnLoopIndex,
  kPayloadSizeBytes,
  kLast = kPayloadSizeBytes,
};
inline constexpr int kNumStatTypes = static_cast<int>(StatType::kLast) + 1;

absl::string_view StatTypeName(StatType type);

// Returns nullopt for a name that is not in the list above.
std::optional<StatType> FindStatType(absl::string_view name);

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_SCHEMA_H_
