// SPDX-License-Identifier: Apache-2.0
// What the host did to get work onto its devices, from the TraceMe lines of `/host:CPU`:
//
//   train                                                   step_num
//    CommonPjRtLoadedExecutable::Execute (jit_step)         run_id
//     [0] PjRtStreamExecutorRawLoadedExecutable::Execute    replica, partition
//       all-reduce.2                                        the thunk
//         ncclDevKernel_AllReduce...                        correlation_id: the launch
//
// Stats say what a span is, not its name. Spans nest on their line, so everything about a launch is
// found among the spans around it.
#ifndef XLA_PROFILER_COLLECTIVES_HOST_EXECUTIONS_H_
#define XLA_PROFILER_COLLECTIVES_HOST_EXECUTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// What the spans around a launch say: of each, the innermost that says it. Nullopt when none does.
struct LaunchContext {
  std::optional<int64_t> run_id;
  std::optional<int64_t> replica;
  std::optional<int64_t> partition;
  // The user's step number.
  std::optional<int64_t> step;
};

// The call that launched device work.
struct HostLaunch : LaunchContext {
  // Numbers the thunk's span: launches of one thunk share it. Nullopt when no span lies between the
  // execution and the launch.
  std::optional<uint64_t> thunk;
};

class HostExecutions {
 public:
  // For a profile without a host plane: finds no launch.
  HostExecutions() = default;

  // Called for each event of each line, numbered from 0, with at least the stats of the selection.
  struct Also {
    StatSelection stats;
    absl::FunctionRef<void(const XLineVisitor& line, uint32_t number, const XEventVisitor&)> visit;
  };
  // `also` saves whoever asks more of the events a walk of its own; may be null.
  static absl::StatusOr<HostExecutions> Read(const XPlaneVisitor& host_plane,
                                             const Also* also = nullptr);

  // Returns the launch of that correlation id; nullopt when the profile does not hold it. Who asks for
  // many keeps the hint from one to the next, 0 at first: ids mostly follow each other.
  std::optional<HostLaunch> FindLaunch(uint64_t correlation_id, size_t* hint) const;

 private:
  friend class HostLineReader;

  struct Launch {
    uint64_t correlation_id = 0;
    // Position in contexts_.
    uint32_t context = 0;
    // Number of the thunk's span; 0 for none.
    uint32_t thunk = 0;
  };

  // Launches share contexts. The first is that of launches which no span says anything about.
  std::vector<LaunchContext> contexts_ = {{}};
  // In the order of their correlation ids, each once.
  std::vector<Launch> launches_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_COLLECTIVES_HOST_EXECUTIONS_H_
