// SPDX-License-Identifier: Apache-2.0
// Runs a program to its end, without a shell, and makes sure that nothing of it is left: it and
// whatever it starts form a process group, which is killed when the time is over, when it has
// written too much, when it ends itself but leaves others behind, when this process gets a signal
// that would end it (kEndingSignals). When this process is killed itself, the program dies with it.
#ifndef ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_
#define ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace meridian {

struct ChildProcessOptions {
  // The program's path, then its arguments.
  std::vector<std::string> command;
  std::string working_directory = ".";
  absl::Duration timeout = absl::InfiniteDuration();
  // How much it may write to standard output and standard error together.
  int64_t max_output_bytes = int64_t{1} << 30;
  // How large a file it may write: one that goes on for ever is not to fill the disk.
  int64_t max_file_bytes = int64_t{16} << 30;
  // How many files it must be able to hold open; its limit is raised to what the system allows.
  int64_t open_files = 0;
  // Called with pieces of its standard output as they come.
  std::function<void(absl::string_view)> on_output;
};

struct ChildProcessResult {
  enum class End {
    kExited,
    // Killed by a signal that was not ours.
    kSignaled,
    kTimedOut,
    // It wrote too much to its streams, or into a file.
    kWroteTooMuch,
  };
  End end = End::kExited;
  // The exit code; 0 unless it exited.
  int exit_code = 0;
  // The signal that killed it; 0 for none.
  int signal = 0;
  // The last bytes of standard error.
  std::string error_tail;
};

// Runs the command; its standard input is empty. Unavailable when it cannot be started (no such
// program, no permission) or the limit on open files is too low; Cancelled when one of
// kEndingSignals came, which is then noted (unfinished_files.h). Safe to call from several threads
// at once.
absl::StatusOr<ChildProcessResult> RunChildProcess(const ChildProcessOptions& options);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_SIDECAR_CHILD_PROCESS_H_
