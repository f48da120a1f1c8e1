// SPDX-License-Identifier: Apache-2.0
// What every command's main() has in common: flags, --help, errors, exit codes.
#ifndef TOOLS_COMMAND_H_
#define TOOLS_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/command_line/command_line.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

// Parses the flags of spec (and --json, which every command has), answers --help, runs the body and
// returns the exit code: the body's own, or that of its error, which is printed on standard error
// as "name: message". Arguments that are no flags are refused. Interrupted, hung up or told to end,
// the process ends its children, removes what it has not finished writing and ends by that signal.
int RunCommand(const CommandSpec& spec, int argc, char** argv,
               const std::function<absl::StatusOr<int>()>& body);

// True when the command is to print one JSON object on standard output.
bool JsonWanted();

// The directory that relative paths start from: the user's, also under `bazel run`. Empty for the
// process's own.
std::string UserDirectory();

// Returns the path as the user meant it.
std::string UserPath(const std::string& path);

// Returns the XSpaces that --traces lists: files, folders and globs. InvalidArgument for an empty
// list; the message shows the example, e.g. "run/".
absl::StatusOr<std::vector<std::string>> UserProfiles(const std::string& traces,
                                                      absl::string_view example);

// Input files are inflated where $TMPDIR says.
InputFileOptions UserInputOptions();

// Writes to standard output; an error (a full disk) is the environment's. A reader that closes its
// pipe ends the command silently, as it ends other programs.
absl::Status Print(const std::string& text);

}  // namespace meridian

#endif  // TOOLS_COMMAND_H_
