// SPDX-License-Identifier: Apache-2.0
// The work that the devices of a run did, as its profiles show it, with what is known about each
// piece: its instruction, its execution, its launch. Everything that makes a graph of a run starts
// from this, and from the collectives matched between the profiles.
//
//   GPU   kernels, copies and fills on the lines "Stream #<n>" of `/device:GPU:<n>`
//   TPU   ops on the line "XLA Ops" of `/device:TPU:<n>`; collectives that have a start and a done
//         run beside them, on a stream of their own
//   CPU   thunks on the threads of `/host:CPU`; threads are numbered by their first thunk
//
// An op or thunk that only surrounds others, as a loop does, is not work; it is counted.
#ifndef CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_
#define CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/stored_vector.h"
#include "xla_profiler/base/optional_number.h"
#include "xla_profiler/base/string_pool.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/steps/step_events.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kThunk };

// A call on the host that launched work.
struct HostCall {
  // Time from the profile's base.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Position of its name in ProfileWork::call_names.
  uint32_t name = 0;
  // Position of its line in the file, from 0.
  uint32_t thread = 0;
};

// What all work of a stream has in common whose events say the same about what ran. Texts point into
// ProfileWork::texts.
struct DeviceOp {
  absl::string_view name;
  // The stream, or the thread of a CPU.
  int64_t stream = 0;
  // What the events say about themselves, as text; empty when they say nothing.
  absl::string_view module;
  absl::string_view hlo_op;
  // Null when the profile does not hold the program. Of a collective's start, done or wrapper the
  // instruction is the one that communicates.
  const HloProgram* program = nullptr;
  const HloInstruction* instruction = nullptr;
  const HloCollective* collective = nullptr;
  // Bytes that a copy on a GPU moves; 0 when the profile does not say, and for other work.
  int64_t copied_bytes = 0;
  WorkKind kind = WorkKind::kKernel;
  // A copy or fill that runs under the name of a collective, before or after it.
  bool prepares_collective = false;
  // Launched as a part of a CUDA graph: hlo_op names the graph's thunk.
  bool in_command_buffer = false;
};

// A run has millions of these.
struct DeviceWork {
  // What ran, one of ProfileWork::ops.
  const DeviceOp* op = nullptr;
  // Time from the profile's base.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Equal for all work of one execution of the program.
  OptionalNumber run_id;
  // Number of the step that it belongs to; absent when the profile has no steps.
  OptionalNumber step;
  // The host's call that launched it, one of ProfileWork::calls; null when that is not known.
  const HostCall* call = nullptr;
  // Correlation id of that call, known or not, of which CUDA uses 32 bits; 0 when there is none.
  uint32_t correlation = 0;
  // The call that launched it is a step's first, before which its host waits for this device, be
  // that busy or not (host_pace.h).
  bool host_waited = false;

  // When the call that launched it began; its own start when that is not known.
  int64_t LaunchPs() const { return call == nullptr ? start_ps : call->start_ps; }
};

struct WorkingDevice {
  // As LocalDevice::name.
  std::string name;
  // In the order of starts; of equal starts the longer first.
  StoredVector<DeviceWork> work;
};

// The work of one profile, which is kept open.
struct ProfileWork {
  explicit ProfileWork(XSpaceReader opened) : reader(std::move(opened)) {}

  XSpaceReader reader;
  HloModuleIndex programs;
  // Unix time that all times count from: the session's start.
  int64_t base_ns = 0;
  std::vector<WorkingDevice> devices;
  // What ran on them. Elements keep their address.
  std::deque<DeviceOp> ops;
  // Names of GPUs without events.
  std::vector<std::string> idle_devices;
  // Calls in the order of their correlation ids.
  StoredVector<HostCall> calls;
  std::vector<absl::string_view> call_names;
  // The texts of ops and call_names: copies, so that using them does not bring pages of the file back
  // into memory.
  StringPool texts;
  // How many device events are no work, by reason.
  std::map<std::string, int64_t> dropped;
  // The steps that the work is in.
  std::vector<StepEvent> steps;

  // Takes all that is in files out of memory until it is read again.
  void Forget() const;
};

// Errors are those of a damaged file, and FailedPrecondition when the session's start is not known;
// `profile_start_ns` (Unix time) wins over what the profile says. Calls and work are stored in the
// folder.
absl::StatusOr<std::unique_ptr<ProfileWork>> ReadDeviceWork(XSpaceReader reader,
                                                            std::optional<int64_t> profile_start_ns,
                                                            FileSystem& file_system,
                                                            const std::string& temporary_directory);

struct ProfiledRunOptions {
  XSpaceReaderOptions reader;
  RankOptions ranks;
  // Unix time at which the sessions began, by trace, for traces that do not say; may be empty.
  std::vector<std::optional<int64_t>> profile_starts_ns;
  // Times of a profile that does not say when its session began count from its start. For several such
  // profiles they would have nothing in common.
  bool start_may_be_unknown = false;
  // The collectives, where they were read already; emptied. Null, or without profiles, to read them.
  CollectiveRun* collectives = nullptr;
  // Called before each file with its position; may be null.
  std::function<void(size_t file)> progress;
};

// The profiles of a run and the collectives matched between them.
struct ProfiledRun {
  // One for each node: a file, or a node of a combined file. The collectives have the same nodes in
  // the same order.
  std::vector<std::unique_ptr<ProfileWork>> profiles;
  CollectiveRun collectives;
};

// Clocks are taken as they are. Errors are those of damaged files and of MatchCollectives.
absl::StatusOr<ProfiledRun> ReadProfiledRun(FileSystem& file_system,
                                            const std::vector<std::string>& traces,
                                            const ProfiledRunOptions& options = {});

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_
