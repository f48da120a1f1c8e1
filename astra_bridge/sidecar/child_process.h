// SPDX-License-Identifier: Apache-2.0
// Runs a program to its end, without a shell, and makes sure that nothing of it is left: it and
// whatever it starts form a process group, which is killed when the time is over, when it ends
// itself but leaves others behind, and when a signal ends this process (unfinished_files.h). When
// this process is killed itself, the program dies with it.
#ifndef ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_
#define ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace meridian {

struct ChildProcessOptions {
  // The program's path, then its arguments.
  std::vector<std::string> command;
  std::string working_directory = ".";
  // Files for its standard output and standard error; relative to the working directory.
  std::string output_file = "/dev/null";
  std::string error_file = "/dev/null";
  absl::Duration timeout = absl::InfiniteDuration();
  // How large a file it may write: one that goes on for ever is not to fill the disk.
  int64_t max_file_bytes = int64_t{1} << 30;
};

struct ChildProcessResult {
  enum class End {
    kExited,
    // Killed by a signal that was not ours.
    kSignaled,
    kTimedOut,
    // It wrote too much into a file.
    kWroteTooMuch,
  };
  End end = End::kExited;
  // The exit code; 0 unless it exited.
  int exit_code = 0;
  // The signal that killed it; 0 for none.
  int signal = 0;
};

// Runs the command; its standard input is empty, and it may hold as many files open as the system
// allows. Unavailable when it cannot be started. Safe to call from several threads at once.
absl::StatusOr<ChildProcessResult> RunChildProcess(const ChildProcessOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_
