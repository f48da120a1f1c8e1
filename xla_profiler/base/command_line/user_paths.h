// SPDX-License-Identifier: Apache-2.0
// Paths as the user who started the program means them.
#ifndef XLA_PROFILER_BASE_COMMAND_LINE_USER_PATHS_H_
#define XLA_PROFILER_BASE_COMMAND_LINE_USER_PATHS_H_

#include <string>

#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Returns the variable of the process's environment; empty when there is none.
std::string EnvironmentVariable(const char* name);

// The directory that relative paths start from: the user's, also under `bazel run`. Empty for the
// process's own.
std::string UserDirectory();

// Returns the path as the user meant it.
std::string UserPath(const std::string& path);

// Input files are inflated where $TMPDIR says.
InputFileOptions UserInputOptions();

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_COMMAND_LINE_USER_PATHS_H_
