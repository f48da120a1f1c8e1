// The work that the devices of one profile did, with what is known about each piece: its
// instruction, its execution, its launch.
//
//   GPU   kernels, copies and fills on the lines "Stream #<n>" of `/device:GPU:<n>`
//   TPU   ops on the line "XLA Ops" of `/device:TPU:<n>`; collectives that have a start and a done
//         run beside them, on a stream of their own
//   CPU   thunks on the threads of `/host:CPU`; threads are numbered by their first thunk
//
// An op or thunk that only surrounds others, as a loop does, is not work; it is counted.
#ifndef CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_
#define CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/steps/step_events.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kThunk };

// Texts point into the profile's bytes.
struct DeviceWork {
  absl::string_view name;
  WorkKind kind = WorkKind::kKernel;
  // The stream, or the thread of a CPU.
  int64_t stream = 0;
  // From the profile's base.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // What the event says about itself, as text; empty when it says nothing.
  absl::string_view module;
  absl::string_view hlo_op;
  // Null when the profile does not hold the program. Of a collective's start, done or wrapper the
  // instruction is the one that communicates.
  const HloProgram* program = nullptr;
  const HloInstruction* instruction = nullptr;
  const HloCollective* collective = nullptr;
  // Of a copy: what the profiler says about it, as text.
  absl::string_view copy_details;
  // A copy or fill that runs under the name of a collective, before or after it.
  bool prepares_collective = false;
  // Launched as a part of a CUDA graph: hlo_op names the graph's thunk.
  bool in_command_buffer = false;
  // Equal for all work of one execution of the program.
  std::optional<int64_t> run_id;
  // Of the host's call that launched it.
  std::optional<uint64_t> correlation;
  std::optional<int64_t> launch_ps;
  // The step that it belongs to, when the profile has steps.
  std::optional<int64_t> step;
};

// A call on the host that launched work.
struct HostCall {
  absl::string_view name;
  // Of its line, numbered from 0 in the order of the file.
  int64_t thread = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
};

struct WorkingDevice {
  // As LocalDevice::name.
  std::string name;
  // By start; of equal starts the longer first.
  std::vector<DeviceWork> work;
};

// Keeps the profile open.
struct ProfileWork {
  explicit ProfileWork(XSpaceReader opened) : reader(std::move(opened)) {}

  XSpaceReader reader;
  HloModuleIndex programs;
  // Unix time that all times count from: the session's start.
  int64_t base_ns = 0;
  std::vector<WorkingDevice> devices;
  // By correlation id.
  std::map<uint64_t, HostCall> calls;
  // Device events that are no work, by reason.
  std::map<std::string, int64_t> dropped;
  // Those that the work is in.
  StepEvents steps;
};

// Errors are those of a damaged file, and FailedPrecondition when the session's start is not known;
// `profile_start_ns` (Unix time) wins over what the profile says.
absl::StatusOr<std::unique_ptr<ProfileWork>> ReadDeviceWork(
    XSpaceReader reader, std::optional<int64_t> profile_start_ns = std::nullopt);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_DEVICE_WORK_H_
