// SPDX-License-Identifier: Apache-2.0
// Puts together the CollectiveEvents of one profile from the kernels or thunks that a reader finds.
// A reader of traces without programs hands it an empty HloModuleIndex.
#ifndef XLA_PROFILER_COLLECTIVES_COLLECTIVE_COLLECTOR_H_
#define XLA_PROFILER_COLLECTIVES_COLLECTIVE_COLLECTOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/hlo/hlo_module_index.h"

namespace meridian {

// A piece of a collective's execution: a kernel, a thunk, a TPU op. The collector sets what the
// whole execution decides: device, group, occurrence and kernels.
struct CollectivePiece : CollectiveEvent {
  // Pieces of one op, device and run with equal keys are one execution; nullopt: one by itself.
  std::optional<uint64_t> execution;
};

class CollectiveCollector {
 public:
  // The index must outlive the collector.
  CollectiveCollector(const HloModuleIndex& programs, ProfileCollectives* out)
      : programs_(programs), out_(out) {}

  const HloModuleIndex& programs() const { return programs_; }

  // Returns the collective that an instruction of the program belongs to; nullptr when it belongs
  // to none. A program that cannot be decoded is counted as unresolved.
  const HloCollective* FindCollective(const HloProgram& program, absl::string_view instruction);

  // Returns the op of a collective, adding it when it is new. Bytes or groups that could not be
  // told are counted as unresolved once.
  uint32_t OpOf(const HloProgram& program, const HloCollective& collective);

  // Adds an op that no HLO describes.
  uint32_t AddOp(CollectiveOp op);

  uint32_t AddDevice(LocalDevice device);
  // Returns a device for what the host does for one of a slice: one of the profile's, or, when it
  // has none, one that stands for the host.
  uint32_t HostDevice(int64_t slice, int64_t device_of_slice);
  LocalDevice& device(uint32_t index) { return out_->devices[index]; }

  // Joins the piece to those of its execution.
  void AddPiece(const CollectivePiece& piece);

  void AddUnresolved(const std::string& reason, const std::string& example) {
    out_->unresolved.Add(reason, example);
  }

  // Completes the events: looks up groups, numbers occurrences, sorts. Sets
  // assigned_devices to those of the programs; a reader without programs sets them afterwards.
  void Finish();

 private:
  // Identifies the execution that a piece belongs to.
  using ExecutionKey = std::tuple<uint32_t, uint32_t, int64_t, bool, uint64_t>;

  void NumberOccurrences();
  void ListAssignedDevices();
  // Counts, once, what a reader of the program's collectives should know.
  void ReportProgram(const HloProgram& program, const HloCollective& collective);

  const HloModuleIndex& programs_;
  ProfileCollectives* out_;
  // Positions in ProfileCollectives::events.
  absl::flat_hash_map<ExecutionKey, size_t> executions_;
  // Positions in ProfileCollectives::ops.
  absl::flat_hash_map<const HloCollective*, uint32_t> ops_;
  absl::flat_hash_set<const HloProgram*> seen_programs_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_COLLECTIVE_COLLECTOR_H_
