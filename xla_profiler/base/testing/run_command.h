// SPDX-License-Identifier: Apache-2.0
// Runs one of the project's commands as a user would, without a shell.
#ifndef XLA_PROFILER_BASE_TESTING_RUN_COMMAND_H_
#define XLA_PROFILER_BASE_TESTING_RUN_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

namespace meridian {

struct CommandResult {
  // -N when signal N ended the command.
  int exit_code = 0;
  std::string standard_output;
  std::string standard_error;
  // The most memory that the command, or the process that started it, had at one time.
  int64_t peak_bytes = 0;
};

// `command` is the label's path among the runfiles, e.g. "tools/xspace_inspect"; the test names it
// in `data`.
CommandResult RunCommandLine(const std::string& command, const std::vector<std::string>& arguments);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_TESTING_RUN_COMMAND_H_
